// What a variant is started from: command, venv, wheel, image, worktree.
#include "harness/scenario/field_makers.h"
#include "harness/scenario/sections.h"

namespace warmgate::scenario {

using namespace makers;

namespace {

// A text alone means the key that is named here.
Field with_short_form(Field field, std::string_view key) {
  field.short_key = key;
  return field;
}

Field words_of(std::string_view name, std::string_view meaning, std::size_t least = 1) {
  Field field = list(name, meaning, element(Type::kText));
  field.min_items = least;
  field.max_items = 256;
  return field;
}

Field wheel_field() {
  Field field =
      object("wheel", "a Python wheel, installed into a virtual environment of its own",
             {text("path", "file; what a text alone means"),
              text("url", "where it is downloaded from; needs sha256"),
              text("commit", "commit that it was built from; the URL is the preset's, or `from`"),
              text("from", "commit: URL with {commit} in it"),
              text("sha256", "of the file, 64 hex digits"),
              text("python", "interpreter that the environment is made with; default python3"),
              words_of("pip", "more arguments of pip install, such as --no-index")});
  field.either = {{"path"}, {"url"}, {"commit", "from"}};
  return with_short_form(std::move(field), "path");
}

Field image_field() {
  return with_short_form(
      object(
          "image", "a container image that the command runs in",
          {text("name", "repository:tag or repository@digest; what a text alone means"),
           choice("engine", "what runs it; default the first that is there", {"docker", "podman"}),
           words_of("run", "more arguments of its run, such as [--gpus, all]"),
           boolean("list_packages", "start it once, before any run, to list its packages")}),
      "name");
}

Field worktree_field() {
  Field native = object("native", "environment with the dependencies and the prebuilt native parts",
                        {text("venv", "virtual environment that has them"), wheel_field(),
                         text("built_from",
                              "commit that they were built from; default what the "
                              "package says itself")});
  native.either = {{"venv"}, {"wheel"}};
  return with_short_form(
      object("worktree", "a revision of a repository, checked out into the cache",
             {text("revision", "commit, tag or branch; what a text alone means"),
              text("repo", "its repository; default the one that the scenario lies in"),
              std::move(native),
              text("package", "distribution that holds the native parts; default the preset's"),
              words_of("native_paths",
                       "globs of the repository; a revision whose diff touches one "
                       "cannot use the prebuilt parts; default the preset's"),
              words_of("native_files",
                       "globs of the installed package's files that are taken; default "
                       "the preset's, else *.so and *.so.*"),
              words_of("python_path",
                       "folders of the repository that Python looks into; default its "
                       "root")}),
      "revision");
}

}  // namespace

std::vector<Field> artefact_fields() {
  return {
      words_of("command", "program and arguments instead of the target's, never through a shell"),
      text("venv", "path of a virtual environment that the target's command runs in"),
      wheel_field(), image_field(), worktree_field()};
}

std::vector<std::vector<std::string_view>> artefact_choices() {
  return {{"venv"}, {"wheel"}, {"image"}, {"worktree"}};
}

}  // namespace warmgate::scenario
