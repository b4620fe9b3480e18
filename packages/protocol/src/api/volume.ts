import { z } from "zod";
import { sandboxIdSchema } from "../sandbox-id.ts";
import { instantSchema } from "./names.ts";
import { providerNameSchema } from "./sandbox.ts";

/** What happens to the volumes of a destroyed sandbox. */
export const deleteSandboxQuerySchema = z
  .strictObject({
    /** `remove`, the default, or `keep`; only providers of containers keep volumes. */
    volumes: z.enum(["remove", "keep"]),
  })
  .partial();

/** A volume that a destroyed sandbox left. */
const volumeResourceSchema = z
  .strictObject({
    name: z.string(),
    provider: providerNameSchema,
    /** The sandbox that it belonged to. */
    sandbox: sandboxIdSchema,
    /** Where it was mounted. */
    path: z.string(),
    sizeBytes: z.int(),
    keptAt: instantSchema,
    /** Sandboxes that mount it; it cannot be removed while there are any. */
    usedBy: z.array(sandboxIdSchema),
  })
  .meta({ id: "Volume" });

export const volumeListSchema = z.strictObject({ items: z.array(volumeResourceSchema) }).meta({ id: "VolumeList" });

export type DeleteSandboxQuery = z.infer<typeof deleteSandboxQuerySchema>;
export type VolumeResource = z.infer<typeof volumeResourceSchema>;
