import type { ErrorCode } from "./error-codes.ts";

interface DetailTypes {
  string: string;
  number: number;
  "string[]": readonly string[];
  "number[]": readonly number[];
  "object[]": readonly object[];
  unknown: unknown;
}

/** The type of one detail. A trailing "?" marks a detail that not every error with this reason has. */
type DetailType = keyof DetailTypes | `${keyof DetailTypes}?`;

/** A row of the table of reasons. */
export interface ErrorReasonEntry {
  readonly code: ErrorCode;
  /** What happened, as one sentence. */
  readonly meaning: string;
  /** The next step, where a call site has no more precise one. Absent when the caller ended the operation itself. */
  readonly hint?: string;
  readonly details?: Readonly<Record<string, DetailType>>;
}

type TypeOf<Type> = Type extends `${infer Base extends keyof DetailTypes}?`
  ? DetailTypes[Base] | null | undefined
  : Type extends keyof DetailTypes
    ? DetailTypes[Type]
    : never;

type OptionalKeys<Fields> = { [Key in keyof Fields]: Fields[Key] extends `${string}?` ? Key : never }[keyof Fields];

/** The type of `details` that a row describes. */
export type DetailsOf<Entry> = Entry extends { readonly details: infer Fields }
  ? { readonly [Key in Exclude<keyof Fields, OptionalKeys<Fields>>]: TypeOf<Fields[Key]> } & {
      readonly [Key in OptionalKeys<Fields>]?: TypeOf<Fields[Key]>;
    }
  : { readonly [key: string]: never };
