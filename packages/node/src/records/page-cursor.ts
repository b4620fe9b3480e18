import { isSandboxId, SandboxError, type SandboxId } from "@sandpiper/protocol";

/** Where a page ended. Contains only what the caller has seen: a row number would reveal how many sandboxes other tenants have. */
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
  throw new SandboxError("bad_cursor", { message: "cannot continue the list: the cursor is invalid" });
}
