/** The content of each file of console/, by its name. */
export function builtConsole(): Promise<ReadonlyMap<string, string>>
