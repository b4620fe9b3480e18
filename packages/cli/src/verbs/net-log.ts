import type { FlowRecord, SandboxNetwork } from "@sandpiper/sdk";
import type { Arguments } from "../command/arguments.ts";
import { Interruption } from "../command/interruption.ts";
import type { Verb } from "../command/verb.ts";
import { followOption } from "../options/shared-options.ts";
import { parseDuration, parseNumber } from "../options/values.ts";
import { flowColumns, flowLine } from "../output/flow-line.ts";
import { noticeOf, passThrough, print, printJson } from "../output/print.ts";
import { showRows, wantsJson } from "../output/show.ts";
import { firstSandbox } from "../target/find-sandbox.ts";

export const netLogVerb: Verb = {
  name: "net log",
  summary: "show the connections and DNS queries of a sandbox",
  operands: ["SANDBOX"],
  options: [
    { ...followOption, summary: "keep printing new ones until Ctrl-C, or until the sandbox is destroyed" },
    { name: "denied", summary: "show only denials" },
    { name: "since", value: "DURATION", summary: "show only what began in the last DURATION, such as 90s or 10m" },
    { name: "limit", value: "N", default: "100", summary: "show the newest N, up to 1000" },
    {
      name: "json",
      summary:
        "print a JSON array, or with --follow one JSON object per line (default when the output is not a terminal)",
    },
  ],
  details: `With --follow, a connection appears when it begins and again when it has ended.
A denial names the rule that would allow it. A sandbox with the network "none" has no records.`,
  examples: ["sandpiper net log build", "sandpiper net log -f --denied build"],
  learnMore: "docs/network.md",
  async run(arguments_) {
    const sinceMs = parseDuration(arguments_, "since");
    const limit = parseNumber(arguments_, "limit", { example: 100 });
    const since = sinceMs === undefined ? undefined : new Date(Date.now() - sinceMs);
    const filter = { denied: arguments_.has("denied") || undefined, since };
    const { network } = await firstSandbox(arguments_);
    if (arguments_.has("follow")) return await follow(arguments_, network, { ...filter, limit });
    const { items, dropped } = await network.logPage({ ...filter, limit });
    if (dropped > 0) noticeOf(arguments_)(`${dropped} older records gave way to newer ones`);
    await showRows(arguments_, { columns: flowColumns, rows: items });
    return 0;
  },
};

interface Filter {
  readonly denied?: boolean | undefined;
  readonly since?: Date | undefined;
  readonly limit?: number | undefined;
}

async function follow(arguments_: Arguments, network: SandboxNetwork, { limit, ...filter }: Filter): Promise<number> {
  using interruption = new Interruption();
  const { signal } = interruption;
  const line = wantsJson(arguments_) ? (flow: FlowRecord) => `${JSON.stringify(flow)}\n` : flowLine;
  return await interruption.exitCodeOf(async () => {
    const write = passThrough(interruption);
    const show = (flow: FlowRecord) => write("stdout", Buffer.from(line(flow)));
    const { items, cursor: after } = await network.logPage({ ...filter, limit, signal });
    for (const flow of items) await show(flow);
    for await (const flow of network.log({ ...filter, after, follow: true, signal })) await show(flow);
  });
}

export const netSuggestVerb: Verb = {
  name: "net suggest",
  summary: "print the fewest rules that allow what a sandbox did",
  operands: ["SANDBOX"],
  options: [
    { name: "since", value: "DURATION", summary: "use only what began in the last DURATION, such as 90s or 10m" },
    { name: "json", summary: "print the rules as a JSON object" },
  ],
  details: `Prints an option for "sandpiper create" and "sandpiper net set". Let the sandbox run with --network open once,
and then use the suggestion. Two or more hosts of a bundle become the bundle, three or more sub-domains a wildcard.`,
  examples: ["sandpiper net suggest build", 'sandpiper net set build "$(sandpiper net suggest build | cut -d" " -f2)"'],
  learnMore: "docs/network.md",
  async run(arguments_) {
    const sinceMs = parseDuration(arguments_, "since");
    const { network } = await firstSandbox(arguments_);
    const suggestion = await network.suggest({
      since: sinceMs === undefined ? undefined : new Date(Date.now() - sinceMs),
    });
    const { text, dropped } = suggestion;
    const notice = noticeOf(arguments_);
    if (dropped > 0) notice(`${dropped} older records gave way to newer ones, so the rules may lack hosts`);
    if (arguments_.has("json")) await printJson(suggestion);
    else if (text === null) notice("no connection was recorded: the network none allows them all");
    else await print(`--network ${text}\n`);
    return 0;
  },
};
