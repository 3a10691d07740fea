# BRANT_BUILD_VERSION: what all tools say of themselves, and rows of whoever measured them: "0.1.0+g1234567", with
# ".dirty" after changes that were not committed; without git "0.1.0". The revision is looked up when the build is
# configured; `make build` does that each time.
set(BRANT_BUILD_VERSION "${PROJECT_VERSION}")
find_program(BRANT_GIT git)
if(BRANT_GIT AND EXISTS ${PROJECT_SOURCE_DIR}/.git)
  execute_process(COMMAND ${BRANT_GIT} -c safe.directory=* describe --always --dirty=.dirty --abbrev=7 --exclude=*
                  WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE brant_revision OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(brant_revision)
    set(BRANT_BUILD_VERSION "${PROJECT_VERSION}+g${brant_revision}")
  endif()
endif()
