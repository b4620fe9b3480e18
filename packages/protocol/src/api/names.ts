import { z } from "zod";

/** Bounds the cost of a list, which compares each requested label with all labels of each sandbox. */
export const MAX_LABELS = 64;

/** Parts that several resources share. */
export const labelsSchema = z
  .record(z.string().regex(/^(?!sandpiper\.)[A-Za-z0-9._/-]{1,128}$/), z.string().max(4096))
  .refine((labels) => Object.keys(labels).length <= MAX_LABELS, { error: `more than ${MAX_LABELS} labels` })
  .meta({ description: 'Strings by key; keys that start with "sandpiper." are reserved.' });

export const envSchema = z.record(z.string().regex(/^[^=\0]+$/), z.string().regex(/^[^\0]*$/));

export const nameSchema = z.string().min(1).max(128);

export const instantSchema = z.iso.datetime().meta({ description: "A time in ISO 8601 format, in UTC." });

/** A path inside a sandbox; relative ones start at the default user's home. */
export const sandboxPathSchema = z
  .string()
  .min(1)
  .max(4096)
  .regex(/^[^\0]*$/);

export const durationMsSchema = z
  .int()
  .min(1)
  .max(365 * 24 * 3_600_000);

/** Query parameters are strings. */
export const queryFlagSchema = z.enum(["true", "false"]).transform((text) => text === "true");

export const queryNumberSchema = z
  .string()
  .regex(/^\d{1,15}$/)
  .transform(Number);

export function pageSchema<Item extends z.ZodType>(item: Item) {
  return z.strictObject({
    items: z.array(item),
    /** The `cursor` of the next page; null on the last page. */
    nextCursor: z.string().nullable(),
  });
}
