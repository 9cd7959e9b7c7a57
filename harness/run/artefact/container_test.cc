// Images through an engine that is a script: what it is asked, and what a run is started with.
#include <gmock/gmock.h>

#include <cstdlib>

#include "harness/run/artefact/makers.h"
#include "harness/run/artefact/testing.h"

namespace warmgate::run::testing {
namespace {

using scenario::ImageSource;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::string kId = "sha256:" + std::string(64, 'c');

class Images : public ArtefactTest {
 protected:
  Images() : store_(path("cache"), false, cancel_), path_(std::getenv("PATH")) {
    ::setenv("PATH", (path("bin").string() + ":/usr/bin:/bin").c_str(), 1);
  }
  ~Images() override { ::setenv("PATH", path_.c_str(), 1); }

  /// `docker` as a script that notes what it is asked.
  void docker(const std::string& body, const std::string& name = "docker") {
    write_script(path("bin") / name,
                 "#!/bin/sh\necho \"$@\" >> " + path("asked").string() + "\n" + body);
  }
  static std::string about(const std::string& more = "") {
    return "cat <<'END'\n[{\"Id\": \"" + kId +
           "\", \"RepoDigests\": [\"a/b@sha256:12\"], \"Config\": {\"Labels\": "
           "{\"org.opencontainers.image.revision\": \"837eae6458\", "
           "\"org.opencontainers.image.version\": \"0.11.0\"}, \"Env\": [\"PATH=/opt/bin\", "
           "\"HF_TOKEN=hunter2hunter2\", \"odd\", \"=x\"]}" +
           more + "}]\nEND\n";
  }
  MakeContext context() { return {store_, dir_.path(), dir_.path(), {}, {"serve"}}; }
  ImageSource image() {
    ImageSource out;
    out.name = "a/b:v1";
    return out;
  }
  std::string why(const ImageSource& from) {
    return message_of([&] { make_image(context(), from); });
  }

  Store store_;
  std::string path_;
};

TEST_F(Images, AreWhatTheirEngineSaysOfThem) {
  docker("case \"$1 $2\" in 'image inspect') " + about() + ";;\nesac\n");
  const Ready ready = make_image(context(), image());
  EXPECT_EQ(ready.identity.hash, std::string(64, 'c'));
  EXPECT_EQ(ready.identity.commit, "837eae6458");
  EXPECT_EQ(ready.identity.version, "0.11.0");
  EXPECT_EQ(ready.identity.environment.at("PATH"), "/opt/bin");
  EXPECT_FALSE(ready.identity.packages) << "an image is started only if it may be";
  EXPECT_THAT(ready.container, ElementsAre((path("bin") / "docker").string(), kId));
  EXPECT_EQ(read_file(path("asked")), "image inspect -- a/b:v1\n");
}

TEST_F(Images, AreFetchedBeforeAnythingIsTimed) {
  docker("case \"$1\" in\npull) touch " + path("pulled").string() + ";;\nimage) test -e " +
         path("pulled").string() + " || { echo 'No such image' >&2; exit 1; }\n" + about() +
         ";;\nesac\n");
  EXPECT_EQ(why(image()), "");
  EXPECT_THAT(read_file(path("asked")), HasSubstr("pull -- a/b:v1\n"));
}

TEST_F(Images, WhatCannotBeHadIsNamed) {
  docker("echo \"daemon: $1\" >&2; exit 1\n");
  EXPECT_THAT(why(image()), HasSubstr("image a/b:v1 is not here ("));
  EXPECT_THAT(why(image()), HasSubstr("cannot be pulled: "));
  EXPECT_THAT(why(image()), HasSubstr("daemon: pull"));
  for (const char* answer :
       {"nonsense", "[]", "{}", "[{\"Id\": \"--privileged\"}]", "[{\"Id\": 5}]"}) {
    docker("echo '" + std::string(answer) + "'\n");
    EXPECT_THAT(why(image()), HasSubstr("says nothing of image a/b:v1 that can be read")) << answer;
  }
  ImageSource podman = image();
  podman.engine = "podman";
  if (std::system("command -v podman >/dev/null") != 0) {
    EXPECT_THAT(why(podman), HasSubstr("there is no podman in PATH"));
  }
  docker(about(), "podman");
  EXPECT_EQ(why(podman), "");
}

TEST_F(Images, PackagesAreListedByARunOnlyIfThatIsAllowed) {
  docker("case \"$1\" in image) " + about() +
         ";;\nrun) echo '[[\"numpy\", \"1.26\"], [\"Alpha\", \"2\"], [1], \"x\"]';;\nesac\n");
  ImageSource from = image();
  from.list_packages = true;
  const Ready ready = make_image(context(), from);
  ASSERT_TRUE(ready.identity.packages);
  ASSERT_EQ(ready.identity.packages->size(), 2u);
  EXPECT_EQ(ready.identity.packages->at(0).name, "Alpha");
  EXPECT_THAT(read_file(path("asked")),
              HasSubstr("run --rm --network none --entrypoint python3 " + kId));
}

TEST_F(Images, ARunIsStartedThroughTheEngineAndStoppedByName) {
  Ready ready;
  ready.container = {"/usr/bin/docker", kId};
  ready.container_run = {"--gpus", "all"};
  target::TargetSpec spec;
  spec.run_dir = "/tmp/run";
  target::WorkerSpec worker;
  worker.argv = {"vllm", "serve", "--port", "8000"};
  worker.env = {{"HF_TOKEN", "hunter2"}};
  spec.workers = {worker};
  put_on(ready, "warmgate-x", spec);
  EXPECT_THAT(
      spec.workers[0].argv,
      ElementsAre("/usr/bin/docker", "run", "--rm", "--init", "--name", "warmgate-x", "--network",
                  "host", "--volume", "/tmp/run:/tmp/run", "--env", "HF_TOKEN", "--env", "TMPDIR",
                  "--env", "WARMGATE_EVENTS_DIR", "--env", "WARMGATE_RUN", "--gpus", "all",
                  "--entrypoint", "vllm", kId, "serve", "--port", "8000"));
  EXPECT_EQ(spec.workers[0].env.at("HF_TOKEN"), "hunter2")
      << "by name only in the list of processes";
  EXPECT_THAT(stop_container(ready, "warmgate-x"),
              ElementsAre("/usr/bin/docker", "stop", "-t", "10", "warmgate-x"));
  EXPECT_THAT(stop_container(Ready(), "x"), IsEmpty());
}

TEST_F(Images, SeveralMembersAreSeveralContainers) {
  Ready ready;
  ready.container = {"docker", kId};
  target::TargetSpec spec;
  target::WorkerSpec worker;
  worker.argv = {"x"};
  spec.workers = {worker, worker};
  put_on(ready, "n", spec);
  EXPECT_EQ(spec.workers[0].argv[5], "n-0");
  EXPECT_EQ(spec.workers[1].argv[5], "n-1");
}

}  // namespace
}  // namespace warmgate::run::testing
