import { z } from "zod";

/** Bounds the cost of a list, which compares each requested label with all labels of each sandbox. */
export const MAX_LABELS = 64;

/** Parts that several resources share. */
export const labelsSchema = z
  .record(z.string().regex(/^(?!sandpiper\.)[A-Za-z0-9._/-]{1,128}$/), z.string().max(4096))
  .refine((labels) => Object.keys(labels).length <= MAX_LABELS, { error: `more than ${MAX_LABELS} labels` })
  .meta({
    description: 'Strings by key; keys that start with "sandpiper." are reserved.',
    maxProperties: MAX_LABELS,
  });

const MAX_VARIABLES = 1024;
/** As much as Linux accepts for a single variable. The node stores the environment of each sandbox. */
const MAX_ENV_BYTES = 128 * 1024;

export const envSchema = z
  .record(
    z
      .string()
      .max(1024)
      .regex(/^[^=\0]+$/),
    z
      .string()
      .max(MAX_ENV_BYTES)
      .regex(/^[^\0]*$/),
  )
  .refine((env) => Object.keys(env).length <= MAX_VARIABLES, { error: `more than ${MAX_VARIABLES} variables` })
  .refine((env) => isWithinBytes(Object.entries(env).flat(), MAX_ENV_BYTES), {
    error: `longer than ${MAX_ENV_BYTES} bytes in total; write large values to a file`,
  })
  .meta({ maxProperties: MAX_VARIABLES });

/** Whether texts are no longer than this in total, as UTF-8. */
export function isWithinBytes(texts: readonly string[], limitBytes: number): boolean {
  const chars = texts.reduce((sum, { length }) => sum + length, 0);
  if (chars * 3 <= limitBytes) return true;
  const encoder = new TextEncoder();
  return chars <= limitBytes && texts.reduce((sum, text) => sum + encoder.encode(text).length, 0) <= limitBytes;
}

export const nameSchema = z.string().min(1).max(128);

export const instantSchema = z.iso.datetime().max(64).meta({ description: "A time in ISO 8601 format, in UTC." });

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
