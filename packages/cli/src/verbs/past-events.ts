import type { Client, EventBody, PastEventsOptions } from "@sandpiper/sdk";

const PAGE = 1000;

/** Everything that has happened after an id, page after page. */
export async function* pastEvents(
  client: Pick<Client, "pastEvents">,
  options: PastEventsOptions,
): AsyncGenerator<EventBody> {
  let after = options.after ?? 0;
  for (;;) {
    const page = await client.pastEvents({ ...options, after, limit: PAGE });
    yield* page;
    const last = page.at(-1);
    // The node may give fewer at a time than were asked for.
    if (last === undefined) return;
    after = last.id;
  }
}
