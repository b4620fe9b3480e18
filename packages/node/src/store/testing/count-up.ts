// Increments a counter in one object of a store and prints each step, until the test kills it.
import { DirectoryStore } from "../directory-store.ts";

const store = new DirectoryStore(process.argv[2] ?? "");
for (;;) {
  const object = await store.get("shared/counter");
  if (object === undefined) throw new Error("the counter was away for a moment");
  const next = Buffer.from(`${Number(Buffer.from(object.bytes).toString()) + 1}`);
  if ((await store.put("shared/counter", next, { ifMatch: object.tag })) !== undefined) process.stdout.write("+");
}
