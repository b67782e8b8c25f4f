/** The numbers of a system call: on x64, and on arm64 where it has the call. */
type Numbers = readonly [x64: number, arm64: number | undefined];

/** What no program in a jail has any business with. They fail with "not permitted". */
export const refusedCalls: Readonly<Record<string, Numbers>> = {
  // Other processes
  ptrace: [101, 117],
  process_vm_readv: [310, 270],
  process_vm_writev: [311, 271],
  process_madvise: [440, 440],
  process_mrelease: [448, 448],
  kcmp: [312, 272],
  pidfd_getfd: [438, 438],
  move_pages: [279, 239],
  migrate_pages: [256, 238],
  // Mounts and file handles
  mount: [165, 40],
  umount2: [166, 39],
  pivot_root: [155, 41],
  mount_setattr: [442, 442],
  open_tree: [428, 428],
  move_mount: [429, 429],
  fsopen: [430, 430],
  fsconfig: [431, 431],
  fsmount: [432, 432],
  fspick: [433, 433],
  name_to_handle_at: [303, 264],
  open_by_handle_at: [304, 265],
  quotactl: [179, 60],
  quotactl_fd: [443, 443],
  fanotify_init: [300, 262],
  lookup_dcookie: [212, 18],
  // Parts of the kernel with a long record of holes
  setns: [308, 268],
  bpf: [321, 280],
  perf_event_open: [298, 241],
  userfaultfd: [323, 282],
  keyctl: [250, 219],
  add_key: [248, 217],
  request_key: [249, 218],
  memfd_secret: [447, 447],
  remap_file_pages: [216, 234],
  // The machine itself
  init_module: [175, 105],
  finit_module: [313, 273],
  delete_module: [176, 106],
  kexec_load: [246, 104],
  kexec_file_load: [320, 294],
  reboot: [169, 142],
  swapon: [167, 224],
  swapoff: [168, 225],
  acct: [163, 89],
  syslog: [103, 116],
  settimeofday: [164, 170],
  clock_settime: [227, 112],
  clock_adjtime: [305, 266],
  adjtimex: [159, 171],
  sethostname: [170, 161],
  setdomainname: [171, 162],
  vhangup: [153, 58],
  nfsservctl: [180, 42],
  iopl: [172, undefined],
  ioperm: [173, undefined],
  modify_ldt: [154, undefined],
  uselib: [134, undefined],
  ustat: [136, undefined],
  sysfs: [139, undefined],
  _sysctl: [156, undefined],
  create_module: [174, undefined],
  get_kernel_syms: [177, undefined],
  query_module: [178, undefined],
};

/** A browser builds its own jail inside of ours with these; nobody else may. */
export const namespaceCalls: Readonly<Record<string, Numbers>> = {
  unshare: [272, 97],
  chroot: [161, 51],
};

/** Answered as if the kernel did not have them: programs then take the older way. */
export const absentCalls: Readonly<Record<string, Numbers>> = {
  io_uring_setup: [425, 425],
  io_uring_enter: [426, 426],
  io_uring_register: [427, 427],
  // Its flags are behind a pointer, which a filter cannot follow.
  clone3: [435, 435],
};

/** Memory that belongs to no process, so that only a cgroup can count it. */
export const uncountedMemoryCalls: Readonly<Record<string, Numbers>> = {
  memfd_create: [319, 279],
  shmget: [29, 194],
  msgget: [68, 186],
};

/** Allowed or not by their arguments. */
export const judgedCalls = {
  clone: [56, 220],
  socket: [41, 198],
  socketpair: [53, 199],
  ioctl: [16, 29],
} as const satisfies Record<string, Numbers>;
