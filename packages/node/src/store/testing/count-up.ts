// Increments a counter in a store forever and prints "+" after each write. The test kills this process at random moments.
import { DirectoryStore } from "../directory-store.ts";

const store = new DirectoryStore(process.argv[2] ?? "");
for (;;) {
  const object = await store.get("shared/counter");
  if (object === undefined) throw new Error("the counter disappeared for a moment");
  const next = Buffer.from(`${Number(Buffer.from(object.bytes).toString()) + 1}`);
  if ((await store.put("shared/counter", next, { ifMatch: object.tag })) !== undefined) process.stdout.write("+");
}
