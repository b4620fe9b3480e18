import { SandboxError } from "@sandpiper/core";

/** Whether the caller wants a stream of events instead of a list. */
export function wantsEvents(request: Request): boolean {
  return (request.headers.get("accept") ?? "").includes("text/event-stream");
}

/** A browser that reconnects sends the last id it has seen, which overrides the query. */
export function lastEventId(request: Request): number | undefined {
  const text = request.headers.get("last-event-id");
  if (text === null || text === "") return undefined;
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new SandboxError("invalid_last_event_id", { message: "the Last-Event-ID header is not the id of an event" });
}
