import { SandboxError, type SandboxId } from "@sandpiper/protocol";

export function noSuchProcess(sandbox: SandboxId, process: string): SandboxError {
  return new SandboxError("no_such_process", { message: `sandbox ${sandbox} has no process ${process}` });
}

/** Of a sandbox that was restored or rebuilt without its processes. Which ones those were is not saved: whoever asks for one has known it. */
export function processLost(sandbox: SandboxId, process: string): SandboxError {
  return new SandboxError("process_lost", {
    message: `process ${process} is gone: sandbox ${sandbox} was restored or rebuilt, which keeps files and no processes`,
  });
}
