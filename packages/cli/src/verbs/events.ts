import type { Client, EventBody, PastEventsOptions } from "@sandpiper/sdk";
import type { Arguments } from "../command/arguments.ts";
import { Interruption } from "../command/interruption.ts";
import { invalidValue, usageError } from "../command/usage-error.ts";
import type { Verb } from "../command/verb.ts";
import { followOption } from "../options/shared-options.ts";
import { plainText } from "../output/format.ts";
import { passThrough, print, printJson } from "../output/print.ts";
import { wantsJson } from "../output/show.ts";
import { requireNode } from "../target/find-node.ts";
import { findSandbox } from "../target/find-sandbox.ts";

const PAGE = 1000;

export const eventsVerb: Verb = {
  name: "events",
  summary: "show the events of the node or of a sandbox",
  operands: ["[SANDBOX]"],
  options: [
    { ...followOption, summary: "keep printing new events until Ctrl-C" },
    { name: "after", value: "ID", summary: "show only events after this one" },
    { name: "replay", summary: "begin with the current state of each sandbox instead of past events" },
    {
      name: "json",
      summary:
        "print a JSON array, or with --follow one JSON object per line (default when the output is not a terminal)",
    },
  ],
  examples: ["sandpiper events --follow", "sandpiper events --follow --replay", "sandpiper events build --after 120"],
  learnMore: "docs/observability.md",
  async run(arguments_) {
    const start = startOf(arguments_);
    const client = await requireNode();
    const [name] = arguments_.operands;
    const options = name === undefined ? start : { ...start, sandbox: (await findSandbox(client, name)).id };
    if (arguments_.has("follow")) return follow(arguments_, (signal) => client.events({ ...options, signal }));
    const events = start.replay ? await client.pastEvents(options) : await Array.fromAsync(pastEvents(client, options));
    if (wantsJson(arguments_)) await printJson(events);
    else await print(events.map(eventLine).join(""));
    return 0;
  },
};

/** All events after an ID, page by page. */
export async function* pastEvents(
  client: Pick<Client, "pastEvents">,
  options: PastEventsOptions,
): AsyncGenerator<EventBody> {
  let after = options.after ?? 0;
  for (;;) {
    const page = await client.pastEvents({ ...options, after, limit: PAGE });
    yield* page;
    const last = page.at(-1);
    // The node may return fewer at a time than requested.
    if (last === undefined) return;
    after = last.id;
  }
}

async function follow(arguments_: Arguments, open: (signal: AbortSignal) => AsyncIterable<EventBody>): Promise<number> {
  using interruption = new Interruption();
  const line = wantsJson(arguments_) ? (event: EventBody) => `${JSON.stringify(event)}\n` : eventLine;
  return await interruption.exitCodeOf(async () => {
    const write = passThrough(interruption);
    for await (const event of open(interruption.signal)) await write("stdout", Buffer.from(line(event)));
  });
}

function eventLine({ id, at, kind, sandboxId, details }: EventBody): string {
  const more = Object.entries(details).map(([key, value]) => `${key}=${JSON.stringify(value)}`);
  return `${plainText([id, at, kind, sandboxId ?? "-", ...more].join("  "))}\n`;
}

function startOf(arguments_: Arguments): { readonly after?: number; readonly replay: boolean } {
  if (!arguments_.has("replay")) return { after: parseAfter(arguments_.get("after")), replay: false };
  if (!arguments_.has("after")) return { replay: true };
  throw usageError("events: --replay cannot be combined with --after", "use one of them");
}

function parseAfter(value: string | undefined): number {
  if (value === undefined) return 0;
  if (/^\d{1,15}$/.test(value)) return Number(value);
  throw invalidValue("after", { value, expected: "the ID of an event", hint: "use a number from sandpiper events" });
}
