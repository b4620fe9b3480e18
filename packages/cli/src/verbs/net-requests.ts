import type { NetworkRequest } from "@sandpiper/sdk";
import type { Arguments } from "../command/arguments.ts";
import type { Verb } from "../command/verb.ts";
import { jsonOption } from "../options/shared-options.ts";
import { shortId, timeUntil } from "../output/format.ts";
import { networkLines } from "../output/network-lines.ts";
import { showResult, showRows } from "../output/show.ts";
import type { Column } from "../output/table.ts";
import { firstSandbox } from "../target/find-sandbox.ts";
import { pick } from "../target/pick.ts";

export const netRequestsVerb: Verb = {
  name: "net requests",
  summary: "list the hosts that a sandbox wants to reach and that wait for a decision",
  operands: ["SANDBOX"],
  options: [jsonOption],
  details: `A sandbox with the network "ask" holds each connection to a new host until you approve or deny it.
The node denies what nobody decides in time.`,
  examples: ["sandpiper net requests build"],
  learnMore: "docs/network.md",
  async run(arguments_) {
    const { network } = await firstSandbox(arguments_);
    await showRows(arguments_, { columns, rows: await network.requests() });
    return 0;
  },
};

const decisionOperands = ["SANDBOX", "REQUEST…"];
const decisionOptions = [{ name: "json", summary: "print the network as a JSON object" }];
const decisionDetails = `REQUEST is an ID or the beginning of one from "sandpiper net requests SANDBOX", or a host such as pypi.org.
The decision becomes a rule of the sandbox.`;

export const netApproveVerb: Verb = {
  name: "net approve",
  summary: "allow hosts that a sandbox wants to reach",
  operands: decisionOperands,
  options: decisionOptions,
  details: decisionDetails,
  examples: ["sandpiper net approve build pypi.org"],
  learnMore: "docs/network.md",
  run: (arguments_) => decide(arguments_, "approve"),
};

export const netDenyVerb: Verb = {
  name: "net deny",
  summary: "deny hosts that a sandbox wants to reach",
  operands: decisionOperands,
  options: decisionOptions,
  details: decisionDetails,
  examples: ["sandpiper net deny build 3f2a"],
  learnMore: "docs/network.md",
  run: (arguments_) => decide(arguments_, "deny"),
};

async function decide(arguments_: Arguments, decision: "approve" | "deny"): Promise<number> {
  const { network } = await firstSandbox(arguments_);
  const waiting = await network.requests();
  // All are found before one is decided.
  const chosen = new Set(arguments_.operands.slice(1).flatMap((text) => pickRequests(text, waiting)));
  for (const { id } of chosen) await network[decision](id);
  const policy = await network.get();
  await showResult(arguments_, { json: policy, lines: networkLines(policy) });
  return 0;
}

/** A host stands for its requests on all ports. */
function pickRequests(text: string, waiting: readonly NetworkRequest[]): readonly NetworkRequest[] {
  const ofHost = waiting.filter((request) => text === hostOf(request) || text === `${hostOf(request)}:${request.port}`);
  return ofHost.length > 0 ? ofHost : [pick("network_request", text, waiting)];
}

function hostOf({ name, address }: NetworkRequest): string {
  return name ?? address ?? "";
}

const columns: readonly Column<NetworkRequest>[] = [
  { title: "ID", cell: ({ id }) => shortId(id) },
  { title: "HOST", cell: (request) => `${hostOf(request)}:${request.port}` },
  { title: "PROGRAM", cell: ({ program }) => program ?? "-" },
  { title: "PID", align: "right", cell: ({ pid }) => (pid === null ? "-" : String(pid)) },
  { title: "DENIED IN", align: "right", cell: ({ expiresAt }) => timeUntil(expiresAt) },
];
