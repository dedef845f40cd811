# What `cmake --install` installs, and the Debian package that CPack makes from it (`make package`).
include(GNUInstallDirs)
install(TARGETS lockstep RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY models/stories260K DESTINATION ${CMAKE_INSTALL_DATADIR}/lockstep/models)
install(PROGRAMS packaging/container/entrypoint.sh DESTINATION ${CMAKE_INSTALL_DATADIR}/lockstep/container)
# The manual and the completions are made by the program that they describe (src/CMakeLists.txt).
if(LOCKSTEP_TOLD)
  install(FILES ${LOCKSTEP_TOLD}/lockstep.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
  install(FILES ${LOCKSTEP_TOLD}/lockstep DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
  install(FILES ${LOCKSTEP_TOLD}/_lockstep DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
  install(FILES ${LOCKSTEP_TOLD}/lockstep.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
endif()
install(FILES README.md DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/lockstep)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/lockstep RENAME copyright)
if(LOCKSTEP_PAGE_LICENSES)  # of cmake/page.cmake: what the page in the program is made of
  install(FILES ${LOCKSTEP_PAGE_LICENSES} DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/lockstep)
endif()
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/lockstep)
install(DIRECTORY packaging/kubernetes packaging/slurm packaging/container packaging/launchd packaging/systemd
  packaging/ansible packaging/homebrew DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/lockstep/examples)

if(CMAKE_SYSTEM_NAME STREQUAL "Linux")
  # The units name /usr/bin/lockstep and are only in the package.
  install(FILES packaging/systemd/lockstep.service packaging/systemd/lockstep-router.service
    DESTINATION /usr/lib/systemd/system COMPONENT system EXCLUDE_FROM_ALL)
  install(FILES packaging/systemd/lockstep.sysusers
    DESTINATION /usr/lib/sysusers.d RENAME lockstep.conf COMPONENT system EXCLUDE_FROM_ALL)
  install(FILES packaging/systemd/lockstep.default
    DESTINATION /etc/default RENAME lockstep COMPONENT system EXCLUDE_FROM_ALL)
endif()

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME lockstep)
set(CPACK_PACKAGE_VENDOR lockstep)
set(CPACK_PACKAGE_CONTACT "the lockstep maintainers <lockstep@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "one LLM server made of the machines you own")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL Unspecified system)
set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_PACKAGE_SECTION net)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "ca-certificates, libibverbs1")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "libvulkan1, mesa-vulkan-drivers")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA
  ${CMAKE_SOURCE_DIR}/packaging/debian/postinst
  ${CMAKE_SOURCE_DIR}/packaging/debian/prerm
  ${CMAKE_SOURCE_DIR}/packaging/debian/postrm
  ${CMAKE_SOURCE_DIR}/packaging/debian/conffiles)
# Fixed, so that the builder's umask does not matter.
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
include(CPack)
