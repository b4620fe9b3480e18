/** The arguments and the answer of a monitor command. */
interface Command<Arguments, Answer> {
  readonly arguments: Arguments;
  readonly answer: Answer;
}

type Nothing = Readonly<Record<never, never>>;

interface MigrationCapability {
  readonly capability: "events" | "x-ignore-shared";
  readonly state: boolean;
}

/** C's `struct tm`. */
interface RtcTime {
  readonly tm_year: number;
  readonly tm_mon: number;
  readonly tm_mday: number;
  readonly tm_hour: number;
  readonly tm_min: number;
  readonly tm_sec: number;
}

/** The monitor commands that the provider uses. */
interface QmpCommands {
  readonly qmp_capabilities: Command<Nothing, Nothing>;
  readonly "query-status": Command<Nothing, { readonly status: string; readonly running: boolean }>;
  readonly "query-kvm": Command<Nothing, { readonly enabled: boolean; readonly present: boolean }>;
  readonly stop: Command<Nothing, Nothing>;
  readonly cont: Command<Nothing, Nothing>;
  readonly quit: Command<Nothing, Nothing>;
  readonly migrate: Command<{ readonly uri: string }, Nothing>;
  readonly "migrate-incoming": Command<{ readonly uri: string }, Nothing>;
  readonly migrate_cancel: Command<Nothing, Nothing>;
  readonly "migrate-set-capabilities": Command<{ readonly capabilities: readonly MigrationCapability[] }, Nothing>;
  readonly "migrate-set-parameters": Command<{ readonly "max-bandwidth": number }, Nothing>;
  readonly "qom-get": Command<{ readonly path: "/machine"; readonly property: "rtc-time" }, RtcTime>;
  readonly "query-migrate": Command<Nothing, { readonly status?: string; readonly "error-desc"?: string }>;
}

export type QmpCommand = keyof QmpCommands;
export type QmpArguments<C extends QmpCommand> = QmpCommands[C]["arguments"];
export type QmpAnswer<C extends QmpCommand> = QmpCommands[C]["answer"];

/** A message that QEMU sends on its own. */
export interface QmpEvent {
  readonly event: string;
  readonly data: Readonly<Record<string, unknown>>;
}
