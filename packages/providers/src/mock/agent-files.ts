import type { Handlers } from "./agent.ts";
import type { TreeEvent } from "./file-tree.ts";
import { Notifier } from "./notifier.ts";

export const fileHandlers: Handlers = {
  "file.stat": ({ files }, { path }) => files.stat(files.resolve(path)),

  async "file.list"({ files }, { path, depth = 1, window }, call) {
    call.grant(window);
    const infos = files.list(files.resolve(path), depth);
    for (const info of infos) await call.sendLine(info);
    return { count: infos.length };
  },

  "file.mkdir": ({ files }, { path, parents, mode }) => ({
    created: files.mkdir(files.resolve(path), parents === true, mode),
  }),

  "file.move"({ files }, { from, to, overwrite }) {
    files.move(files.resolve(from), files.resolve(to), overwrite === true);
    return {};
  },

  "file.remove"({ files }, { path, recursive, missing_ok }) {
    files.remove(files.resolve(path), { recursive: recursive === true, missingOk: missing_ok === true });
    return {};
  },

  "file.chmod"({ files }, { path, mode }) {
    files.chmod(files.resolve(path), mode);
    return {};
  },

  async "file.read"({ files }, { path, offset = 0, length, window }, call) {
    const bytes = files.read(files.resolve(path));
    const range = bytes.subarray(offset, length === undefined ? bytes.length : offset + length);
    call.grant(window);
    await call.sendAll(range);
    return { size: range.length };
  },

  async "file.write"({ files }, { path, mode }, call) {
    const bytes = Buffer.concat(await Array.fromAsync(call.uploads()));
    files.write(files.resolve(path), bytes, mode);
    return { size: bytes.length };
  },

  async "file.watch"({ files }, { path, recursive, window }, call) {
    const root = files.resolve(path);
    files.stat(root);
    const events: TreeEvent[] = [];
    const changed = new Notifier();
    const listener = (event: TreeEvent) => {
      events.push(event);
      changed.notify();
    };
    files.listeners.add(listener);
    call.grant(window);
    try {
      await call.sendLine({ kind: "ready", path: "" });
      for (;;) {
        const event = events.shift();
        if (event === undefined) await call.wait(changed);
        else {
          const below = relative(root, event, recursive === true);
          if (below !== undefined) await call.sendLine(below);
        }
      }
    } finally {
      files.listeners.delete(listener);
    }
  },
};

function relative(root: string, event: TreeEvent, isRecursive: boolean): object | undefined {
  const cut = (path: string) =>
    path === root ? "" : path.startsWith(`${root}/`) ? path.slice(root.length + 1) : undefined;
  const path = cut(event.path);
  if (path === undefined || (!isRecursive && path.includes("/"))) return undefined;
  const to = event.to === undefined ? undefined : cut(event.to);
  if (event.to !== undefined && to === undefined) return { kind: "remove", path };
  return { kind: event.kind, path, to };
}
