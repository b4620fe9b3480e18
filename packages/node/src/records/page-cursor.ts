import { isSandboxId, SandboxError, type SandboxId } from "@sandpiper/protocol";

/** Where a page ended. It names only what the caller has seen: positions in the table would tell how many there are of others. */
export interface PageCursor {
  readonly createdAtMs: number;
  readonly id: SandboxId;
}

export function encodeCursor({ createdAtMs, id }: PageCursor): string {
  return Buffer.from(`${createdAtMs}/${id}`).toString("base64url");
}

export function parseCursor(text: string): PageCursor {
  const [, createdAtMs, id] = /^(\d{1,15})\/(.{36})$/.exec(Buffer.from(text, "base64url").toString()) ?? [];
  if (createdAtMs !== undefined && isSandboxId(id)) return { createdAtMs: Number(createdAtMs), id };
  throw new SandboxError("invalid_argument", {
    reason: "bad_cursor",
    message: "the list cannot be continued: this cursor was not made by it",
    hint: "give the nextCursor of an earlier page unchanged, or none to start at the beginning",
  });
}
