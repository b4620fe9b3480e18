import { type FlowRecord, SandboxError, type SandboxId } from "@sandpiper/protocol";
import type { HttpTransport } from "../http/http-transport.ts";
import { sentEvents } from "../http/sent-events.ts";

export interface FollowOptions {
  readonly path: { readonly id: SandboxId };
  readonly query: { readonly denied?: boolean | undefined; readonly since?: string | undefined };
  readonly after: number;
  readonly signal?: AbortSignal | undefined;
}

/** Records after a cursor as the node writes them, across lost connections and moves of the sandbox. */
export async function* followLog(
  http: HttpTransport,
  { path, query, after, signal }: FollowOptions,
): AsyncGenerator<FlowRecord, void, undefined> {
  const headers = { accept: "text/event-stream" };
  let last = after;
  for (let attempt = 0; ; attempt++) {
    // Opening it retries while the node cannot be reached, or the sandbox moves.
    const body = await http.stream("getNetworkLog", { path, query: { ...query, after: last }, headers, signal });
    try {
      for await (const { id, kind, data } of sentEvents(body)) {
        if (kind === "end") return;
        last = id ?? last;
        attempt = 0;
        yield data as FlowRecord;
      }
    } catch (thrown) {
      // A connection that was cut; the next one continues after the last record.
      if (SandboxError.from(thrown).code !== "unavailable") throw thrown;
    }
    await http.backOff(attempt, signal);
  }
}
