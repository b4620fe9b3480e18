import type { Verb } from "../command/verb.ts";
import { print } from "../output/print.ts";

export const doctorVerb: Verb = {
  name: "doctor",
  usage: "[OPTIONS]",
  summary: "say what works on this machine, what does not, and what to do",
  options: [
    { name: "fix", summary: "remove what dead programs left behind" },
    { name: "json", summary: "print one JSON object instead" },
  ],
  words: [],
  details: "The exit code is 0 when the default provider, gvisor, works, and 1 when it does not.",
  async run(arguments_) {
    const { diagnose } = await import("@sandpiper/node");
    const { checkNode } = await import("../target/check-node.ts");
    const [{ works, checks }, node] = await Promise.all([
      diagnose({ removeLeftovers: arguments_.has("fix") }),
      checkNode(),
    ]);
    const diagnosis = { works, checks: [...checks, node] };
    if (arguments_.has("json")) await print(`${JSON.stringify(diagnosis)}\n`);
    else await print((await import("./doctor-report.ts")).doctorReport(diagnosis));
    return diagnosis.works ? 0 : 1;
  },
};
