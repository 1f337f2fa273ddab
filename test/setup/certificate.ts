import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto'

/** A certificate and its key as PEM. What it signs is trusted by those who trust it. */
export interface Authority {
  readonly name: string
  readonly certificate: string
  readonly key: KeyObject
}

const der = (tag: number, ...parts: readonly Buffer[]): Buffer => {
  const content = Buffer.concat(parts)
  const { length } = content
  const size = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 255]
  return Buffer.concat([Buffer.from([tag, ...size]), content])
}
const sequence = (...parts: readonly Buffer[]) => der(0x30, ...parts)
const oid = (hex: string) => der(0x06, Buffer.from(hex, 'hex'))
const nameOf = (text: string) => sequence(der(0x31, sequence(oid('550403'), der(0x0c, Buffer.from(text)))))
const timeOf = (text: string) => der(0x18, Buffer.from(text))

const ECDSA_WITH_SHA256 = sequence(oid('2a8648ce3d040302'))
const IS_AUTHORITY = sequence(oid('551d13'), der(0x04, sequence(der(0x01, Buffer.from([0xff])))))
const HAS_HOST = '551d11'

/** @param by who signs it; if omitted, it is an authority itself, and `name` no host */
export function certify(name: string, by?: Authority): Authority {
  const { publicKey, privateKey: key } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const host = sequence(oid(HAS_HOST), der(0x04, sequence(der(0x82, Buffer.from(name)))))
  const told = sequence(
    der(0xa0, der(0x02, Buffer.from([2]))),
    der(0x02, Buffer.from([1, ...Buffer.from(name).subarray(0, 8)])),
    ECDSA_WITH_SHA256,
    nameOf(by?.name ?? name),
    sequence(timeOf('20200101000000Z'), timeOf('20990101000000Z')),
    nameOf(name),
    publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, sequence(by === undefined ? IS_AUTHORITY : host)),
  )
  const signature = sign('sha256', told, by?.key ?? key)
  const bytes = sequence(told, ECDSA_WITH_SHA256, der(0x03, Buffer.from([0]), signature))
  const lines = bytes.toString('base64').match(/.{1,64}/g) ?? []
  const certificate = ['-----BEGIN CERTIFICATE-----', ...lines, '-----END CERTIFICATE-----', ''].join('\n')
  return { name, key, certificate }
}
