import { z } from "zod";
import { containerSchema, imageSchema } from "./container.ts";
import { providerNameSchema } from "./sandbox.ts";

export const pullImageBodySchema = z
  .strictObject({
    image: imageSchema,
    /** `missing`, the default, leaves what the engine has as it is. */
    policy: containerSchema.shape.imagePullPolicy,
    /** The node's only provider of containers unless given. */
    provider: providerNameSchema.optional(),
  })
  .meta({ id: "PullImage" });

/** How far the download of one layer is; each is told of again and again. The last event is `done`, or `error` with its error. */
export const pullProgressSchema = z
  .strictObject({
    image: z.string(),
    layer: z.string(),
    status: z.enum(["waiting", "downloading", "unpacking", "building", "complete"]),
    doneBytes: z.int(),
    /** Null before the registry has said so. */
    totalBytes: z.int().nullable(),
  })
  .meta({ id: "PullProgress" });

export type PullImageBody = z.infer<typeof pullImageBodySchema>;
export type PullProgressBody = z.infer<typeof pullProgressSchema>;
