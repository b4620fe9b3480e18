import type { JSONRPCMessage } from "@modelcontextprotocol/server";
import { describe, expect, it } from "vitest";
import { RecentEvents } from "./recent-events.ts";

const message = (text: string): JSONRPCMessage => ({ jsonrpc: "2.0", method: "test", params: { text } });

async function replayed(events: RecentEvents, after: string): Promise<string[]> {
  const sent: string[] = [];
  await events.replayEventsAfter(after, { send: async (id) => void sent.push(id) });
  return sent;
}

describe("RecentEvents", () => {
  it("replays the messages after the last received one, only of the same stream", async () => {
    const events = new RecentEvents({ limitBytes: 10_000 });
    const first = await events.storeEvent("a", {} as JSONRPCMessage);
    const ids = [await events.storeEvent("a", message("1"))];
    await events.storeEvent("b", message("2"));
    ids.push(await events.storeEvent("a", message("3")));
    expect(await replayed(events, first)).toEqual(ids);
    expect(await replayed(events, ids[1] as string)).toEqual([]);
    expect(await events.getStreamIdForEventId(first)).toBe("a");
  });

  it("keeps the newest messages, and always the last one", async () => {
    const events = new RecentEvents({ limitBytes: 200 });
    const old = await events.storeEvent("a", message("1"));
    const large = await events.storeEvent("a", message("x".repeat(1000)));
    expect(await events.getStreamIdForEventId(old)).toBeUndefined();
    expect(await events.getStreamIdForEventId(large)).toBe("a");
    await expect(replayed(events, old)).rejects.toThrow("is no longer available");
  });
});
