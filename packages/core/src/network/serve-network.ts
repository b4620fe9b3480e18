import { type DnsOutcome, type NetworkEvent, networkEventSchema, SandboxError } from "@sandpiper/protocol";
import type { AgentClient } from "../agent/agent-client.ts";
import { invalidAnswer } from "../agent/agent-error.ts";
import { download } from "../agent/download.ts";
import { jsonLines } from "../agent/json-lines.ts";
import { type GuestFlow, WaitingFlows } from "./guest-flow.ts";

/** Each line leads to a decision, a record and an answer. */
const UNITS_PER_LINE = 32;
const WINDOW_BYTES = 256 * 1024;

/** A DNS question of something in the sandbox. */
export interface GuestQuery {
  /** Lower case, without the last dot. */
  readonly name: string;
  /** As in zone files; an unknown one is written TYPE123. */
  readonly type: string;
  answer(outcome: DnsOutcome): void;
}

/** UDP other than DNS, which the agent has dropped. */
export interface GuestDatagram {
  readonly address: string | null;
  readonly port: number | null;
  /** How many since the last report. */
  readonly count: number;
}

/** Decides about what comes out of a sandbox. A flow or query that it throws for is refused. */
export interface NetworkHandler {
  onFlow(flow: GuestFlow): void;
  onQuery(query: GuestQuery): void;
  onDatagram(datagram: GuestDatagram): void;
}

export interface ServedNetwork {
  /** False where nothing redirects connections to the agent, so that no flow will come. */
  readonly isRedirected: boolean;
  /** Resolves when the agent announces no more; with the error if one ended it. */
  readonly ended: Promise<SandboxError | undefined>;
  /** The agent then refuses everything at once. Accepted flows stay. */
  close(): void;
}

/** Has the agent announce flows and queries on this channel. Rejects with `unimplemented` for an agent without a network. */
export async function serveNetwork(client: AgentClient, handler: NetworkHandler): Promise<ServedNetwork> {
  const unlimited = { windowBytes: WINDOW_BYTES, idleTimeoutMs: Number.POSITIVE_INFINITY };
  const stream = download(client, "net.serve", {}, unlimited);
  const lines = jsonLines(stream, {
    client,
    method: "net.serve",
    schema: networkEventSchema,
    unitsPerLine: UNITS_PER_LINE,
  });
  const stopTimer = client.clock.schedule(client.rpcTimeoutMs, () =>
    stream.cancel(client.timeoutError("net.serve", client.rpcTimeoutMs)),
  );
  const first = await lines.next().finally(stopTimer);
  if (first.done || first.value.kind !== "ready") {
    await lines.return();
    throw invalidAnswer("net.serve", "its first line is not ready");
  }
  return {
    isRedirected: first.value.redirected,
    ended: announce(client, lines, handler),
    close: () => void stream.return(),
  };
}

async function announce(
  client: AgentClient,
  lines: AsyncIterable<NetworkEvent>,
  handler: NetworkHandler,
): Promise<SandboxError | undefined> {
  const flows = new WaitingFlows(client);
  try {
    for await (const line of lines) {
      if (line.kind === "flow") announceFlow(flows, line, handler);
      else if (line.kind === "gone") flows.gone(line.flow);
      else if (line.kind === "query") announceQuery(client, line, handler);
      else if (line.kind === "datagram") handler.onDatagram(line);
    }
    return undefined;
  } catch (thrown) {
    return SandboxError.from(thrown);
  } finally {
    flows.allGone();
  }
}

function announceFlow(
  flows: WaitingFlows,
  line: Extract<NetworkEvent, { kind: "flow" }>,
  handler: NetworkHandler,
): void {
  if (flows.isWaiting(line.flow)) throw invalidAnswer("net.serve", `flow ${line.flow} is announced twice`);
  const flow = flows.add(line);
  try {
    handler.onFlow(flow);
  } catch {
    flow.refuse();
  }
}

function announceQuery(
  client: AgentClient,
  line: Extract<NetworkEvent, { kind: "query" }>,
  handler: NetworkHandler,
): void {
  let isAnswered = false;
  const answer = (outcome: DnsOutcome) => {
    if (isAnswered) return;
    isAnswered = true;
    // A channel that has ended took the query with it.
    client.call("net.answer", { query: line.query, outcome }).catch(() => {});
  };
  try {
    handler.onQuery({ name: line.name, type: line.type, answer });
  } catch {
    answer("server_failure");
  }
}
