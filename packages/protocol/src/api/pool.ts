import { z } from "zod";
import { imageSchema } from "./container.ts";
import { providerNameSchema } from "./sandbox.ts";

/** Everything that shapes an instance; a warm instance serves only sandboxes with exactly these values. */
export const poolKeySchema = z.strictObject({
  provider: providerNameSchema,
  image: imageSchema,
  memoryMib: z.int().min(1),
  vcpuCount: z.number().positive(),
  diskMib: z.int().min(1),
  maxProcesses: z.int().min(1),
});

export const setPoolBodySchema = z
  .strictObject({ ...poolKeySchema.partial().shape, target: z.int().min(0).max(1000) })
  .meta({ id: "SetPool" });

export const poolResourceSchema = z
  .strictObject({
    key: poolKeySchema,
    /** How many started instances the pool should hold. */
    target: z.int(),
    ready: z.int(),
    booting: z.int(),
    hits: z.int(),
    misses: z.int(),
    failures: z.int(),
    /** Mean over all hits, including those that waited for a boot; null before the first. */
    meanWaitMs: z.number().nullable(),
    /** Time until the next boot after failures; null for now. */
    retryInMs: z.number().nullable(),
  })
  .meta({ id: "Pool" });

export const poolListSchema = z.strictObject({ items: z.array(poolResourceSchema) }).meta({ id: "PoolList" });

export type PoolKeyBody = z.infer<typeof poolKeySchema>;
export type SetPoolBody = z.infer<typeof setPoolBodySchema>;
export type PoolResource = z.infer<typeof poolResourceSchema>;
