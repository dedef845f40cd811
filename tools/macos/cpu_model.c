// Stand-ins for what Xcode's runtime library has for __builtin_cpu_supports on Intel and Zig's lacks, so that the rest of the program's
// link can be checked (tools/test_macos.sh). A program linked with them would find no instruction set; it is never run.
unsigned int __cpu_model[4];
unsigned int __cpu_features2[3];

int __cpu_indicator_init(void) {
  return 0;
}
