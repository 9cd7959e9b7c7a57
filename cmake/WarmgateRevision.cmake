# The git revision of this tree, in a source file of its own that is written only when it changes:
# a commit relinks one program and recompiles one line. Runs at every build (cmake -P).
#   SOURCE_DIR, OUTPUT
set(revision "unknown")
find_program(GIT git)
if(GIT)
  execute_process(COMMAND ${GIT} -C ${SOURCE_DIR} rev-parse --show-toplevel
                  OUTPUT_VARIABLE top OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
  file(REAL_PATH "${SOURCE_DIR}" here)
  # A copy inside somebody else's repository has not that one's revision.
  if(NOT failed AND "${top}" STREQUAL "${here}")
    execute_process(COMMAND ${GIT} -C ${SOURCE_DIR} rev-parse --short=12 HEAD
                    OUTPUT_VARIABLE head OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
    execute_process(COMMAND ${GIT} -C ${SOURCE_DIR} diff --quiet HEAD -- ERROR_QUIET RESULT_VARIABLE changed)
    if(NOT failed AND head MATCHES "^[0-9a-f]+$")
      set(revision "${head}")
      if(changed)
        string(APPEND revision "-dirty")
      endif()
    endif()
  endif()
endif()
set(text "namespace warmgate {\nextern const char* const kRevision;\nconst char* const kRevision = \"${revision}\";\n}  // namespace warmgate\n")
set(before "")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} before)
endif()
if(NOT before STREQUAL text)
  file(WRITE ${OUTPUT} "${text}")
endif()
