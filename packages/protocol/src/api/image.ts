import { z } from "zod";
import { containerSchema, imageSchema } from "./container.ts";
import { providerNameSchema } from "./sandbox.ts";

export const pullImageBodySchema = z
  .strictObject({
    image: imageSchema,
    /** `missing`, the default, does not update an existing image. */
    policy: containerSchema.shape.imagePullPolicy,
    /** The default is the node's only provider of containers. */
    provider: providerNameSchema.optional(),
  })
  .meta({ id: "PullImage" });

/** The progress of one layer, sent repeatedly. The last event is `done`, or `error` with its error. */
export const pullProgressSchema = z
  .strictObject({
    image: z.string(),
    layer: z.string(),
    status: z.enum(["waiting", "downloading", "unpacking", "building", "complete"]),
    doneBytes: z.int(),
    /** Null before the registry has reported it. */
    totalBytes: z.int().nullable(),
  })
  .meta({ id: "PullProgress" });

export type PullImageBody = z.infer<typeof pullImageBodySchema>;
export type PullProgressBody = z.infer<typeof pullProgressSchema>;
