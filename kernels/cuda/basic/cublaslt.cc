#include "kernels/cuda/basic/cublaslt.h"

#include <cublasLt.h>
#include <dlfcn.h>
#include <glob.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "kernels/cuda/launch.h"

namespace warmgate::kernels::cuda {
namespace {

constexpr std::uint32_t kAlignment = 16;  // of every address and row, bytes
constexpr const char* kNames[] = {"libcublasLt.so.13", "libcublasLt.so.12"};

// Folders of toolkits and of Python environments, as patterns.
std::vector<std::string> folders() {
  std::vector<std::string> out;
  for (const char* variable : {"CUDA_PATH", "CUDA_HOME"}) {
    if (const char* root = std::getenv(variable); root != nullptr && *root != '\0')
      out.push_back(std::string(root) + "/lib64");
  }
  out.insert(out.end(), {"/usr/local/cuda/lib64", "/opt/cuda/lib64", "/usr/local/cuda-*/lib64"});
  const std::string packages = "/lib/python3*/*-packages/nvidia/*/lib";
  if (const char* environment = std::getenv("VIRTUAL_ENV"); environment != nullptr)
    out.push_back(environment + packages);
  for (const char* root : {"/usr", "/usr/local", "/opt/*", "/opt/*/.venv"})
    out.push_back(root + packages);
  if (const char* home = std::getenv("HOME"); home != nullptr)
    out.push_back(std::string(home) + "/.local" + packages);
  return out;
}

struct Opened {
  void* handle = nullptr;
  std::string note;
};

Opened open_library() {
  if (const char* named = std::getenv("WARMGATE_CUBLASLT"); named != nullptr && *named != '\0') {
    if (std::string(named) == "none") return {nullptr, "switched off (WARMGATE_CUBLASLT=none)"};
    void* handle = dlopen(named, RTLD_NOW | RTLD_LOCAL);
    return {handle, handle != nullptr ? named : std::string("WARMGATE_CUBLASLT: ") + dlerror()};
  }
  for (const char* name : kNames) {
    if (void* handle = dlopen(name, RTLD_NOW | RTLD_LOCAL)) return {handle, name};
  }
  for (const std::string& folder : folders()) {
    for (const char* name : kNames) {
      glob_t found{};
      if (glob((folder + "/" + name).c_str(), 0, nullptr, &found) == 0) {
        for (std::size_t i = 0; i < found.gl_pathc; ++i) {
          const std::string path = found.gl_pathv[i];
          if (void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
            globfree(&found);
            return {handle, path};
          }
        }
      }
      globfree(&found);
    }
  }
  return {nullptr,
          "no libcublasLt.so.13 or .12 in the loader's folders, CUDA_PATH, CUDA_HOME, "
          "/usr/local/cuda or Python's nvidia packages"};
}

void need(cublasStatus_t status, const char* call) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw std::runtime_error(std::string(call) + ": cuBLASLt status " + std::to_string(status));
}

// What is used of the library.
struct Library {
  decltype(&cublasLtCreate) create = nullptr;
  decltype(&cublasLtMatmul) matmul = nullptr;
  decltype(&cublasLtMatmulDescCreate) desc_create = nullptr;
  decltype(&cublasLtMatmulDescSetAttribute) desc_set = nullptr;
  decltype(&cublasLtMatmulDescDestroy) desc_destroy = nullptr;
  decltype(&cublasLtMatrixLayoutCreate) layout_create = nullptr;
  decltype(&cublasLtMatrixLayoutSetAttribute) layout_set = nullptr;
  decltype(&cublasLtMatrixLayoutDestroy) layout_destroy = nullptr;
  decltype(&cublasLtMatmulPreferenceCreate) preference_create = nullptr;
  decltype(&cublasLtMatmulPreferenceSetAttribute) preference_set = nullptr;
  decltype(&cublasLtMatmulPreferenceDestroy) preference_destroy = nullptr;
  decltype(&cublasLtMatmulAlgoGetHeuristic) heuristic = nullptr;
  decltype(&cublasLtMatmulAlgoCheck) algo_check = nullptr;
  std::string note;
  bool usable = false;
  std::mutex mutex;
  std::map<int, cublasLtHandle_t> handles;  // by device

  Library() {
    const Opened opened = open_library();
    note = opened.note;
    if (opened.handle == nullptr) return;
    usable = true;
    const auto resolve = [&](const char* symbol, auto& function) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(
          dlsym(opened.handle, symbol));
      if (function != nullptr) return;
      usable = false;
      note += std::string(" lacks ") + symbol;
    };
    resolve("cublasLtCreate", create);
    resolve("cublasLtMatmul", matmul);
    resolve("cublasLtMatmulDescCreate", desc_create);
    resolve("cublasLtMatmulDescSetAttribute", desc_set);
    resolve("cublasLtMatmulDescDestroy", desc_destroy);
    resolve("cublasLtMatrixLayoutCreate", layout_create);
    resolve("cublasLtMatrixLayoutSetAttribute", layout_set);
    resolve("cublasLtMatrixLayoutDestroy", layout_destroy);
    resolve("cublasLtMatmulPreferenceCreate", preference_create);
    resolve("cublasLtMatmulPreferenceSetAttribute", preference_set);
    resolve("cublasLtMatmulPreferenceDestroy", preference_destroy);
    resolve("cublasLtMatmulAlgoGetHeuristic", heuristic);
    resolve("cublasLtMatmulAlgoCheck", algo_check);
  }
  cublasLtHandle_t handle() {
    int device = 0;
    check(cudaGetDevice(&device), "cudaGetDevice");
    cublasLtHandle_t& out = handles[device];
    if (out == nullptr) need(create(&out), "cublasLtCreate");
    return out;
  }
};

Library& library() {
  static Library out;
  return out;
}

using Algo = cublasLtMatmulAlgo_t;

/// Descriptors of one product, and the kernel that was chosen; kept for the process's life.
class Plan {
 public:
  Plan(Library& lt, const Product& p) : lt_(lt) {
    const cublasOperation_t transposed = CUBLAS_OP_T;
    need(lt.desc_create(&desc_, CUBLAS_COMPUTE_32F, CUDA_R_32F), "cublasLtMatmulDescCreate");
    need(lt.desc_set(desc_, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed), "transa");
    // Column-major: yᵀ [outputs,tokens] = w · xᵀ, where w and x are as they lie.
    layout(&a_, CUDA_R_16BF, p.inputs, p.outputs, p.w_stride, p.w_batch, p.batch);
    layout(&b_, CUDA_R_16BF, p.inputs, p.tokens, p.x_stride, p.x_batch, p.batch);
    layout(&c_, p.y_fp32 ? CUDA_R_32F : CUDA_R_16BF, p.outputs, p.tokens, p.y_stride, p.y_batch,
           p.batch);
  }

  /// The library's choice; nothing if it has no kernel.
  std::optional<Algo> best(std::size_t workspace) {
    cublasLtMatmulPreference_t preference = nullptr;
    need(lt_.preference_create(&preference), "cublasLtMatmulPreferenceCreate");
    const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t what, const auto& value) {
      need(lt_.preference_set(preference, what, &value, sizeof value), "preference");
    };
    const std::uint64_t bytes = workspace;
    prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, bytes);
    const std::uint32_t least = kAlignment;
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, least);
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, least);
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, least);
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, least);
    cublasLtMatmulHeuristicResult_t result{};
    int count = 0;
    const cublasStatus_t status =
        lt_.heuristic(lt_.handle(), desc_, a_, b_, c_, c_, preference, 1, &result, &count);
    lt_.preference_destroy(preference);
    return status == CUBLAS_STATUS_SUCCESS && count > 0 ? std::optional<Algo>(result.algo)
                                                        : std::nullopt;
  }
  /// Can this kernel do it too? A tenth of a choice's time.
  bool takes(const Algo& algo, std::size_t workspace) {
    cublasLtMatmulHeuristicResult_t result{};
    return lt_.algo_check(lt_.handle(), desc_, a_, b_, c_, c_, &algo, &result) ==
               CUBLAS_STATUS_SUCCESS &&
           result.state == CUBLAS_STATUS_SUCCESS && result.workspaceSize <= workspace;
  }
  void use(std::optional<Algo> algo) { algo_ = algo; }

  ~Plan() {
    lt_.layout_destroy(c_);
    lt_.layout_destroy(b_);
    lt_.layout_destroy(a_);
    lt_.desc_destroy(desc_);
  }
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  bool run(const Product& p, void* workspace, std::size_t bytes, cudaStream_t stream) const {
    if (!algo_) return false;
    const float one = 1, zero = 0;
    need(lt_.matmul(lt_.handle(), desc_, &one, p.w, a_, p.x, b_, &zero, p.y, c_, p.y, c_, &*algo_,
                    workspace, bytes, stream),
         "cublasLtMatmul");
    return true;
  }

 private:
  void layout(cublasLtMatrixLayout_t* out, cudaDataType_t type, std::int64_t rows,
              std::int64_t cols, std::int64_t stride, std::int64_t batch_stride,
              std::int64_t batch) {
    need(lt_.layout_create(out, type, static_cast<std::uint64_t>(rows),
                           static_cast<std::uint64_t>(cols), stride),
         "cublasLtMatrixLayoutCreate");
    if (batch == 1) return;
    const auto count = static_cast<std::int32_t>(batch);
    need(lt_.layout_set(*out, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count), "batch");
    need(lt_.layout_set(*out, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &batch_stride,
                        sizeof batch_stride),
         "batch stride");
  }
  Library& lt_;
  cublasLtMatmulDesc_t desc_ = nullptr;
  cublasLtMatrixLayout_t a_ = nullptr, b_ = nullptr, c_ = nullptr;
  std::optional<cublasLtMatmulAlgo_t> algo_;
};

/// A product without its number of tokens, which comes rounded up: what a kernel is chosen for.
/// Choosing costs 0.3 to 3 ms, and capture has 35 numbers of tokens.
std::int64_t tokens_chosen_for(std::int64_t tokens) {
  return static_cast<std::int64_t>(
      std::bit_ceil(static_cast<std::uint64_t>(std::max<std::int64_t>(tokens, 16))));
}

using Key = std::array<std::int64_t, 13>;
Key key_of(int device, const Product& p, std::size_t workspace) {
  return {device,
          p.tokens,
          p.outputs,
          p.inputs,
          p.batch,
          p.x_stride,
          p.x_batch,
          p.w_stride,
          p.w_batch,
          p.y_stride,
          p.y_batch,
          p.y_fp32 ? 1 : 0,
          static_cast<std::int64_t>(workspace)};
}

}  // namespace

const std::string& cublaslt_note() { return library().note; }
bool have_cublaslt() { return library().usable; }
void open_cublaslt_early() {
  static const std::jthread opener([] { library(); });
}

bool multiply(const Product& p, void* workspace, std::size_t workspace_bytes, cudaStream_t stream) {
  Library& lt = library();
  if (!lt.usable) return false;
  int device = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  static std::map<Key, std::unique_ptr<Plan>> plans;
  static std::map<Key, std::optional<Algo>> choices;  // by the rounded number of tokens
  const std::lock_guard lock(lt.mutex);
  std::unique_ptr<Plan>& plan = plans[key_of(device, p, workspace_bytes)];
  if (!plan) {
    plan = std::make_unique<Plan>(lt, p);
    Product rounded = p;
    rounded.tokens = tokens_chosen_for(p.tokens);
    const auto [choice, fresh] = choices.try_emplace(key_of(device, rounded, workspace_bytes));
    if (fresh) choice->second = Plan(lt, rounded).best(workspace_bytes);
    const bool fits = choice->second && plan->takes(*choice->second, workspace_bytes);
    plan->use(fits ? choice->second : plan->best(workspace_bytes));
  }
  return plan->run(p, workspace, workspace_bytes, stream);
}

}  // namespace warmgate::kernels::cuda
