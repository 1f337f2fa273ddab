import Sqlite from 'better-sqlite3'

/**
 * All connections are of this process, so that they need no lock of the system: a read takes a seventh of the time. Only
 * the lock of the store stays one.
 */
class OwnDatabase extends Sqlite {
  constructor(file: string, options?: Sqlite.Options) {
    const isOwn = file.startsWith('/') && !file.endsWith('.lock')
    super(isOwn ? `file:${encodeURI(file)}?vfs=unix-excl` : file, options)
  }
}

// biome-ignore lint/style/noDefaultExport: it is loaded in place of a library that has one.
export default OwnDatabase
