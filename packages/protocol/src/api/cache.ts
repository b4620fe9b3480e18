import { z } from "zod";
import { sandboxIdSchema } from "../sandbox-id.ts";

/** A volume that the sandboxes of a project share. */
const cacheResourceSchema = z
  .strictObject({
    project: z.string(),
    name: z.string(),
    sizeBytes: z.int(),
    /** Sandboxes that mount it; it cannot be cleared while there are any. */
    usedBy: z.array(sandboxIdSchema),
  })
  .meta({ id: "Cache" });

export const cacheListSchema = z.strictObject({ items: z.array(cacheResourceSchema) }).meta({ id: "CacheList" });

export type CacheResource = z.infer<typeof cacheResourceSchema>;
