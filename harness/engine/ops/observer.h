// Who watches ops where they execute. Told after each op of the kinds below, with the tensors as
// the op left them; other ops go by. Layers know nothing of it.
#pragma once

#include "harness/engine/recorder.h"

namespace warmgate::engine {

namespace ops {
struct CompressWindow;
struct Embed;
struct FusedQkvNorm;
struct Gemm;
struct GroupedProjection;
struct HyperConnectionPost;
struct HyperConnectionPre;
struct IndexerQuant;
struct InverseRopeQuant;
struct Moe;
struct QNormRopeInsert;
struct RmsNorm;
struct Sample;
struct SavePartialStates;
struct SelectRows;
}  // namespace ops

class Observer {
 public:
  virtual ~Observer() = default;
  virtual void after(const LayerRef& layer, const ops::CompressWindow& op) = 0;
  virtual void after(const LayerRef& layer, const ops::Embed& op) = 0;
  virtual void after(const LayerRef& layer, const ops::FusedQkvNorm& op) = 0;
  virtual void after(const LayerRef& layer, const ops::Gemm& op) = 0;
  virtual void after(const LayerRef& layer, const ops::GroupedProjection& op) = 0;
  virtual void after(const LayerRef& layer, const ops::HyperConnectionPost& op) = 0;
  virtual void after(const LayerRef& layer, const ops::HyperConnectionPre& op) = 0;
  virtual void after(const LayerRef& layer, const ops::IndexerQuant& op) = 0;
  virtual void after(const LayerRef& layer, const ops::InverseRopeQuant& op) = 0;
  virtual void after(const LayerRef& layer, const ops::Moe& op) = 0;
  virtual void after(const LayerRef& layer, const ops::QNormRopeInsert& op) = 0;
  virtual void after(const LayerRef& layer, const ops::RmsNorm& op) = 0;
  virtual void after(const LayerRef& layer, const ops::Sample& op) = 0;
  virtual void after(const LayerRef& layer, const ops::SavePartialStates& op) = 0;
  virtual void after(const LayerRef& layer, const ops::SelectRows& op) = 0;
};

/// Observer has an `after` for ops of type P.
template <class P>
concept Observed = requires(Observer& observer, const LayerRef& layer, const P& op) {
  observer.after(layer, op);
};

}  // namespace warmgate::engine
