import { type ProcessExit, type ProcessHandle, type ProcessSummary, SandboxError, systemClock } from "@sandpiper/core";
import type { ProcessResource } from "@sandpiper/protocol";
import type { LiveSandbox } from "../../sandboxes/live-sandbox.ts";
import type { Handlers } from "../call.ts";
import { requestStream } from "../request-bytes.ts";
import { streamResponse } from "../stream-response.ts";
import { processOutput } from "./process-output.ts";

const MIB = 1024 * 1024;

export const processHandlers = {
  async startProcess({ body, open }) {
    const live = open();
    const { id } = await live.start(body);
    return processResource(await live.process(id));
  },

  async listProcesses({ open }) {
    return { items: (await open().processes()).map(processResource) };
  },

  async getProcess({ params, open }) {
    return processResource(await open().process(params.process));
  },

  async readProcessOutput(call) {
    const { offset = 0, follow = false, source = "all" } = call.query;
    const live = call.open();
    const { id, startOffset, endOffset } = await live.process(call.params.process);
    const from = Math.max(offset, startOffset);
    const to = follow ? undefined : Math.max(from, endOffset);
    const process = await live.attach(id, from);
    return streamResponse(call, (signal) => processOutput({ live, process, from, to, source, signal }), {
      beginsAtOnce: follow,
      lengthBytes: to === undefined || source !== "all" ? undefined : to - from,
      headers: {
        "content-type": "application/octet-stream",
        "sandpiper-start-offset": String(from),
        ...(to === undefined ? {} : { "sandpiper-end-offset": String(to) }),
      },
    });
  },

  async writeProcessInput(call) {
    const { params, query, open } = call;
    const live = open();
    const process = await live.attach(params.process, 0);
    const { offset, close = false } = query;
    let at = offset;
    for await (const bytes of requestStream(call, { limitBytes: live.record.diskMib * MIB })) {
      live.touch("stdin");
      if (at === undefined) await process.write(bytes);
      else {
        await process.writeAt(at, bytes, { close: false });
        at += bytes.length;
      }
    }
    live.touch("stdin");
    if (at !== undefined) return { offset: await process.writeAt(at, new Uint8Array(), { close }) };
    if (close) await process.closeStdin();
    return { offset: (await live.process(process.id)).stdinOffset };
  },

  async signalProcess({ params, body, open }) {
    const process = await open().attach(params.process, 0);
    await process.signal(body.signal.startsWith("SIG") ? body.signal : `SIG${body.signal}`, { target: body.target });
  },

  async resizeProcess({ params, body, open }) {
    await (await open().attach(params.process, 0)).resize(body);
  },

  async waitForProcess({ request, params, query, deps, open }) {
    const { clock = systemClock } = deps;
    const live = open();
    const exit = sharedWait(live, await live.attach(params.process, 0));
    const stopped = Promise.withResolvers<never>();
    const message = "the caller disconnected";
    const leave = () => stopped.reject(new SandboxError("aborted", { message }));
    request.signal.addEventListener("abort", leave, { once: true });
    const { timeoutMs } = query;
    const stop =
      timeoutMs === undefined
        ? undefined
        : clock.schedule(timeoutMs, () => stopped.reject(stillRunning(params.process, timeoutMs)));
    try {
      return await Promise.race([exit, stopped.promise]);
    } finally {
      stop?.();
      request.signal.removeEventListener("abort", leave);
    }
  },

  async deleteProcess({ params, open }) {
    const process = await open().attach(params.process, 0);
    await process[Symbol.asyncDispose]();
  },
} satisfies Partial<Handlers>;

function processResource(process: ProcessSummary): ProcessResource {
  const { stdinOffset: _, argv, startedAt, ...rest } = process;
  return { ...rest, argv: [...argv], startedAt: startedAt.toISOString() };
}

function stillRunning(process: string, timeoutMs: number): SandboxError {
  return new SandboxError("wait_timeout", {
    message: `process ${process} did not end within ${timeoutMs} ms`,
    details: { process },
  });
}

const waits = new WeakMap<LiveSandbox, Map<string, Promise<ProcessExit>>>();

/**
 * Waits for the end of a process with one call to the agent for all callers. A wait cannot be canceled, so repeated
 * requests with a short time limit would exhaust the sandbox's concurrent calls.
 */
function sharedWait(live: LiveSandbox, process: ProcessHandle): Promise<ProcessExit> {
  let ofSandbox = waits.get(live);
  if (ofSandbox === undefined) {
    ofSandbox = new Map();
    waits.set(live, ofSandbox);
  }
  const running = ofSandbox.get(process.id);
  if (running !== undefined) return running;
  const wait = process.wait();
  const settled = () => ofSandbox.delete(process.id);
  wait.then(settled, settled);
  ofSandbox.set(process.id, wait);
  return wait;
}
