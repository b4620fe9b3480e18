import { usageError } from "../command/usage-error.ts";
import type { Verb } from "../command/verb.ts";

export const killVerb: Verb = {
  name: "kill",
  usage: "[OPTIONS] SANDBOX PROCESS…",
  summary: "send a signal to processes of a sandbox and to all that they started",
  options: [{ name: "signal", short: "s", value: "NAME", summary: "such as SIGTERM or HUP (SIGKILL)" }],
  operands: { min: 2, max: Number.POSITIVE_INFINITY, example: "sandpiper kill SANDBOX PROCESS" },
  details: "A process is named by its id, the beginning of it, or its pid; sandpiper ps SANDBOX lists them.",
  async run(arguments_) {
    const [name, ...processes] = arguments_.operands;
    const signal = signalName(arguments_.get("signal") ?? "SIGKILL");
    const { requireNode } = await import("../target/find-node.ts");
    const { findSandbox } = await import("../target/find-sandbox.ts");
    const { pickProcess } = await import("../target/find-process.ts");
    const sandbox = await findSandbox(await requireNode(), name as string);
    const known = await sandbox.processes();
    const targets = processes.map((text) => pickProcess(text, known));
    for (const { id } of targets) {
      const process_ = await sandbox.attach(id);
      await process_.signal(signal, { target: "tree" });
    }
    return 0;
  },
};

function signalName(text: string): string {
  const name = text.toUpperCase();
  if (/^(SIG)?[A-Z][A-Z0-9+-]{0,18}$/.test(name)) return name.startsWith("SIG") ? name : `SIG${name}`;
  throw usageError(`--signal ${text} is no signal`, "for example --signal SIGTERM");
}
