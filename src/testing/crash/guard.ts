// Loaded before every program of the harness: a program must not outlive the test that started it. The
// channel closes when the parent dies, however it dies. SIGKILL, because no handler may delay this end.
process.once("disconnect", () => process.kill(process.pid, "SIGKILL"));
process.channel?.unref();
