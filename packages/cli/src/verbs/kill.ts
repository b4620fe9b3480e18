import { invalidValue } from "../command/usage-error.ts";
import type { Verb } from "../command/verb.ts";
import { pickProcess } from "../target/find-process.ts";
import { firstSandbox } from "../target/find-sandbox.ts";

export const killVerb: Verb = {
  name: "kill",
  summary: "send a signal to processes and their children",
  operands: ["SANDBOX", "PROCESS…"],
  options: [
    {
      name: "signal",
      short: "s",
      value: "NAME",
      default: "SIGKILL",
      summary: "signal to send, such as SIGTERM or HUP",
    },
  ],
  details: `PROCESS is an ID, the beginning of an ID, or a PID from "sandpiper ps SANDBOX".`,
  async run(arguments_) {
    const [, ...processes] = arguments_.operands;
    const signal = signalName(arguments_.get("signal") ?? "SIGKILL");
    const sandbox = await firstSandbox(arguments_);
    const known = await sandbox.processes();
    const targets = processes.map((text) => pickProcess(text, known));
    for (const { id } of targets) {
      const process_ = await sandbox.attach(id);
      await process_.signal(signal, { target: "tree" });
    }
  },
};

function signalName(value: string): string {
  const name = value.toUpperCase();
  if (/^(SIG)?[A-Z][A-Z0-9+-]{0,18}$/.test(name)) return name.startsWith("SIG") ? name : `SIG${name}`;
  throw invalidValue("signal", { value, expected: "the name of a signal", hint: "for example --signal SIGTERM" });
}
