import type { EventBody } from "@sandpiper/sdk";
import type { Arguments } from "../command/arguments.ts";
import { Interruption } from "../command/interruption.ts";
import { usageError } from "../command/usage-error.ts";
import type { Verb } from "../command/verb.ts";
import { passThrough } from "../output/pass-through.ts";
import { plainText } from "../output/plain-text.ts";
import { print } from "../output/print.ts";
import { followOption, printJson, wantsJson } from "../output/show.ts";

export const eventsVerb: Verb = {
  name: "events",
  usage: "[OPTIONS] [SANDBOX]",
  summary: "show what happened on the node",
  options: [
    followOption,
    { name: "after", value: "ID", summary: "only events after this one" },
    { name: "json", summary: "print JSON: an array, or with --follow one object in each line" },
  ],
  operands: { min: 0, max: 1, example: "sandpiper events" },
  details: "Ctrl-C ends --follow. Where there is no terminal, JSON is printed anyway.",
  async run(arguments_) {
    const after = parseAfter(arguments_.get("after"));
    const { requireNode } = await import("../target/find-node.ts");
    const client = await requireNode();
    const [name] = arguments_.operands;
    const { findSandbox } = await import("../target/find-sandbox.ts");
    const sandbox = name === undefined ? undefined : (await findSandbox(client, name)).id;
    const options = { after, ...(sandbox === undefined ? {} : { sandbox }) };
    if (arguments_.has("follow")) return follow(arguments_, (signal) => client.events({ ...options, signal }));
    const { pastEvents } = await import("./past-events.ts");
    const events = await Array.fromAsync(pastEvents(client, options));
    if (wantsJson(arguments_)) await printJson(events);
    else await print(events.map(eventLine).join(""));
    return 0;
  },
};

async function follow(arguments_: Arguments, open: (signal: AbortSignal) => AsyncIterable<EventBody>): Promise<number> {
  using interruption = new Interruption();
  const line = wantsJson(arguments_) ? (event: EventBody) => `${JSON.stringify(event)}\n` : eventLine;
  try {
    const write = passThrough(interruption);
    for await (const event of open(interruption.signal)) await write("stdout", Buffer.from(line(event)));
  } catch (error) {
    if (interruption.exitCode === undefined) throw error;
  }
  return interruption.exitCode ?? 0;
}

export function eventLine({ id, at, kind, sandboxId, details }: EventBody): string {
  const more = Object.entries(details).map(([key, value]) => `${key}=${JSON.stringify(value)}`);
  return `${plainText([id, at, kind, sandboxId ?? "-", ...more].join("  "))}\n`;
}

function parseAfter(text: string | undefined): number {
  if (text === undefined) return 0;
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw usageError(`--after ${text} is no id of an event`, "write a number that sandpiper events shows");
}
