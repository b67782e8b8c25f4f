const PAGES_PER_MB = 16;

/**
 * Runs first in the worker, and in the threads that the shell starts for Python and SQLite: these threads inherit it.
 * V8's own bound for WebAssembly is one for the whole process, and the heap limit of a thread does not cover it.
 * Python's sockets are those of the package `ws`, if it can be loaded: here it cannot, and nothing else opens one.
 * The engine takes its first argument for its own path, and tells it to scripts.
 *
 * A thread of Python waits for each file operation, and takes being woken for being answered. But the shell wakes it after
 * each answer, also when it has seen the answer already and waits for the next one: then that one has failed, for
 * Python with an I/O error. So nobody is woken here by a value that has not changed.
 */
export function firstWords(pythonMemoryMB: number): string {
  const source = `const grow = WebAssembly.Memory.prototype.grow;
WebAssembly.Memory.prototype.grow = function (pages) {
  if (this.buffer.byteLength / 65536 + pages > ${pythonMemoryMB * PAGES_PER_MB}) throw new RangeError("out of memory");
  return grow.call(this, pages);
};
const { wait, load: read } = Atomics;
Atomics.wait = (view, index, value, timeout = Infinity) => {
  const end = performance.now() + timeout;
  for (;;) {
    const woken = wait(view, index, value, Math.max(0, end - performance.now()));
    if (woken !== "ok" || read(view, index) !== value) return woken;
  }
};
const no = () => { throw new Error("there is no network here"); };
const builtin = (name) => process.getBuiltinModule(name);
const modules = builtin("node:module");
const load = modules._load;
modules._load = function (name, ...rest) { return name === "ws" ? no() : load.call(this, name, ...rest); };
builtin("node:net").Socket.prototype.connect = builtin("node:net").Server.prototype.listen = no;
const datagram = builtin("node:dgram").Socket.prototype;
datagram.bind = datagram.connect = datagram.send = no;
process.argv[1] = "/usr/bin/python3";`;
  return `data:text/javascript,${encodeURIComponent(source)}`;
}
