import type { CheckpointResource } from "@sandpiper/sdk";
import { z } from "zod";

/** A checkpoint in the answers of tools. */
export const checkpointFields = {
  checkpoint_id: z.string(),
  name: z.string().nullable(),
  keeps: z.string().describe('"memory": files and running processes; "filesystem": only files.'),
  created_at: z.string(),
  size_bytes: z.int(),
};

export function checkpointRow(checkpoint: CheckpointResource): z.infer<z.ZodObject<typeof checkpointFields>> {
  const { id, name, fidelity, createdAt, sizeBytes } = checkpoint;
  return { checkpoint_id: id, name, keeps: fidelity, created_at: createdAt, size_bytes: sizeBytes };
}
