/**
 * Python source that runs a file as `__main__`, so that tracebacks name the file and its own lines, and so that it can
 * import what lies beside it. (The interpreter sees the shell's files below `/host`.)
 */
export function pythonLauncher(path: string, importFrom: readonly string[]): string {
  const folders = importFrom.map((folder) => `/host${folder === "/" ? "" : folder}`);
  return `import sys as _sys, linecache as _lines, traceback as _trace
_path = ${JSON.stringify(path)}
_sys.path[:0] = ${JSON.stringify(folders)}
_sys.argv = [_path]
with open(_path, encoding="utf-8") as _file:
    _source = _file.read()
_lines.cache[_path] = (len(_source), None, _source.splitlines(True), _path)
try:
    exec(compile(_source, _path, "exec"), {"__name__": "__main__", "__file__": _path, "__builtins__": __builtins__})
except SystemExit:
    raise
except BaseException as _error:
    _trace.print_exception(_error.with_traceback(_error.__traceback__.tb_next))
    _sys.exit(1)
`;
}
