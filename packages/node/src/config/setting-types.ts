import { z } from "zod";

export const absolutePath = z
  .string()
  .regex(/^\/[^\0]*$/)
  .meta({ allowed: "an absolute path" });
export const optionalPath = absolutePath.nullable().default(null);
export const count = z.int().min(1);
export const durationMs = z
  .int()
  .min(1)
  .max(365 * 24 * 3_600_000);
