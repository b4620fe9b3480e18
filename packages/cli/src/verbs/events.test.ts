import type { EventBody, PastEventsOptions } from "@sandpiper/sdk";
import { describe, expect, it } from "vitest";
import { pastEvents } from "./events.ts";

/** A node that returns at most two events at a time. */
const client = {
  async pastEvents({ after = 0 }: PastEventsOptions = {}): Promise<readonly EventBody[]> {
    return [1, 2, 3, 4, 5]
      .filter((id) => id > after)
      .slice(0, 2)
      .map((id) => ({ id }) as EventBody);
  },
};

describe("past events", () => {
  it("come page by page, each once", async () => {
    const ids = async (after: number) => (await Array.fromAsync(pastEvents(client, { after }))).map(({ id }) => id);
    expect(await ids(0)).toEqual([1, 2, 3, 4, 5]);
    expect(await ids(3)).toEqual([4, 5]);
    expect(await ids(5)).toEqual([]);
  });
});
