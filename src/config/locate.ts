import { resolve } from 'node:path'

export interface LocateConfigOptions {
  /** The value of `--config`, if given. */
  readonly option?: string | undefined
  readonly env: Readonly<Record<string, string | undefined>>
  readonly folder: string
}

/**
 * `--config`, else `LATCHKEY_CONFIG`, else `config.json` in the current folder. Only the last is created if missing: a
 * missing file that was `named` is an error.
 */
export function locateConfig({ option, env, folder }: LocateConfigOptions): { path: string; named: boolean } {
  const named = option ?? (env.LATCHKEY_CONFIG || undefined)
  return { path: resolve(folder, named ?? 'config.json'), named: named !== undefined }
}
