import { type FileEntry, SandboxError } from "@sandpiper/core";
import type { FileEntryBody } from "@sandpiper/protocol";
import type { Handlers } from "../call.ts";
import { lengthOf } from "../read-body.ts";
import { requestBytes } from "../request-bytes.ts";
import { eventResponse } from "../server-sent-events.ts";
import { streamResponse } from "../stream-response.ts";
import { type ByteRange, byteRange } from "./byte-range.ts";

const MIB = 1024 * 1024;
/** The whole list is held in memory. */
const MAX_LISTED = 100_000;

export const fileHandlers = {
  async readFile(call) {
    const { path, offset, lengthBytes } = call.query;
    const live = call.open();
    const { sizeBytes } = await live.files.stat(path, { signal: call.request.signal });
    const range = byteRange({ header: call.request.headers.get("range"), offset, lengthBytes }, sizeBytes);
    // Files of /proc have a size of 0 and are not empty.
    const length = range?.lengthBytes ?? (sizeBytes === 0 ? undefined : sizeBytes);
    const source = async function* (signal: AbortSignal) {
      using _ = live.hold("file");
      yield* live.files.read(path, { offset: range?.offset, lengthBytes: length, signal });
    };
    return streamResponse(call, source, {
      status: range === undefined ? 200 : 206,
      lengthBytes: length,
      headers: {
        "content-type": "application/octet-stream",
        "accept-ranges": "bytes",
        ...(range === undefined ? {} : { "content-range": contentRange(range, sizeBytes) }),
      },
    });
  },

  async writeFile(call) {
    const { path, mode, owner } = call.query;
    const live = call.open();
    const content = requestBytes(call, { limitBytes: live.record.diskMib * MIB });
    call.deps.reserve.require("write the file", ["disk"], { diskBytes: lengthOf(call.request) });
    using _ = live.hold("file");
    return await live.files.write(path, content, { mode, owner, signal: call.request.signal });
  },

  async removeFile({ query, request, open }) {
    const { path, recursive, missingOk } = query;
    await open().files.remove(path, { recursive, missingOk, signal: request.signal });
  },

  async statFile({ query, request, open }) {
    return fileEntryBody(await open().files.stat(query.path, { follow: query.follow, signal: request.signal }));
  },

  async listFiles({ query, request, open }) {
    const entries = open().files.list(query.path, { depth: query.depth, signal: request.signal });
    const items: FileEntryBody[] = [];
    for await (const entry of entries) {
      if (items.push(fileEntryBody(entry)) > MAX_LISTED) throw tooManyFiles(query.path);
    }
    return { items };
  },

  async makeDirectory({ body, request, open }) {
    const { path, ...options } = body;
    return { created: await open().files.mkdir(path, { ...options, signal: request.signal }) };
  },

  async moveFile({ body, request, open }) {
    await open().files.move(body.from, body.to, { overwrite: body.overwrite, signal: request.signal });
  },

  async changeMode({ body, request, open }) {
    await open().files.chmod(body.path, body.mode, { recursive: body.recursive, signal: request.signal });
  },

  async watchFiles(call) {
    const { path, recursive } = call.query;
    const live = call.open();
    const left = new AbortController();
    // The reader may leave before it reads the answer.
    call.request.signal.addEventListener("abort", () => left.abort(), { once: true });
    using undo = new DisposableStack();
    undo.use(live.countWatch());
    const watcher = await live.files.watch(path, { recursive, signal: left.signal });
    const counted = undo.move();
    // The watcher ends in every case, also when the caller leaves before it reads the answer.
    left.signal.addEventListener("abort", () => counted.dispose(), { once: true });
    const source = async function* (signal: AbortSignal) {
      using _counted = counted;
      using _ = live.hold("client");
      signal.addEventListener("abort", () => left.abort(), { once: true });
      for await (const { kind, path: at, to } of watcher) yield { kind, data: { kind, path: at, to: to ?? null } };
    };
    if (call.request.method === "HEAD") {
      counted.dispose();
      await watcher[Symbol.asyncDispose]();
    }
    return eventResponse(call, source);
  },
} satisfies Partial<Handlers>;

function tooManyFiles(path: string): SandboxError {
  return new SandboxError("too_many_files", {
    message: `${path} contains more than ${MAX_LISTED} files and directories`,
    details: { limit: MAX_LISTED },
  });
}

function contentRange({ offset, lengthBytes }: ByteRange, sizeBytes: number): string {
  return `bytes ${offset}-${offset + lengthBytes - 1}/${sizeBytes}`;
}

function fileEntryBody({ target, modifiedAt, ...entry }: FileEntry): FileEntryBody {
  return { ...entry, modifiedAt: modifiedAt.toISOString(), target: target ?? null };
}
