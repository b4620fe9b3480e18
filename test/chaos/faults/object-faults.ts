import { setTimeout as sleep } from "node:timers/promises";
import type { DamagedObjects } from "../damaged-objects.ts";
import type { Fault } from "./fault.ts";
import { killInstance } from "./instance-faults.ts";

/** The chunks of the newest checkpoints. */
const CHUNKS = 40;

type Damage = (objects: DamagedObjects, id: string) => Promise<number>;

/** An operator puts the objects back from a backup after a while. */
const corrupted =
  (what: string, damage: Damage): Fault["inject"] =>
  async (context) => {
    const { bed, random, sandbox, log } = context;
    const isRead = random.next() < 0.5;
    const forMs = random.between(1000, 6000);
    await using objects = bed.damage(random);
    const count = await damage(objects, sandbox.id);
    log(`bit flipped in ${count} ${what} of ${sandbox.id} for ${forMs} ms${isRead ? ", and its instance killed" : ""}`);
    if (isRead) await killInstance(context);
    await sleep(forMs);
  };

export const objectFaults: readonly Fault[] = [
  {
    area: "object",
    kind: "object: corrupt chunks",
    inject: corrupted("chunks", (objects) => objects.flipNewestChunks(CHUNKS)),
  },
  {
    area: "object",
    kind: "object: corrupt manifests",
    inject: corrupted("manifests", (objects, id) => objects.flip(`checkpoints/${id}/`)),
  },
  {
    area: "object",
    kind: "object: corrupt state",
    inject: corrupted("states", (objects, id) => objects.flip(`states/${id}.state`)),
  },
  {
    area: "object",
    kind: "object: corrupt lock",
    inject: corrupted("locks", (objects, id) => objects.flip(`locks/${id}.lock`)),
  },
];
