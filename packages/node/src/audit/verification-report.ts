import type { AuditFinding, AuditVerification } from "@sandpiper/protocol";

/** Enough to find the place; a log that was replaced would have one for each entry. */
const MAX_FINDINGS = 100;

/** Collects the result of a verification. */
export class VerificationReport {
  rotated = 0;
  #entries = 0;
  #firstId: number | null = null;
  #lastId: number | null = null;
  readonly #findings: AuditFinding[] = [];

  entry(id: number): void {
    this.#entries += 1;
    this.#firstId ??= id;
    this.#lastId = id;
  }

  add(finding: AuditFinding): void {
    if (this.#findings.length < MAX_FINDINGS) this.#findings.push(finding);
  }

  result(): AuditVerification {
    return {
      isIntact: this.#findings.length === 0,
      entries: this.#entries,
      rotated: this.rotated,
      firstId: this.#firstId,
      lastId: this.#lastId,
      findings: this.#findings,
    };
  }
}
