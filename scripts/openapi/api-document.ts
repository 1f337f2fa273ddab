/* The parts of an OpenAPI 3.1 document that describe this API. */

/** The parts of JSON Schema that the description uses. */
export interface JsonSchema {
  readonly $ref?: string
  readonly $defs?: Readonly<Record<string, JsonSchema>>
  readonly type?: string | readonly string[]
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly format?: string
  readonly description?: string
  readonly default?: unknown
  readonly properties?: Readonly<Record<string, JsonSchema>>
  readonly required?: readonly string[]
  readonly additionalProperties?: boolean | JsonSchema
  readonly items?: JsonSchema
  readonly anyOf?: readonly JsonSchema[]
  readonly oneOf?: readonly JsonSchema[]
  readonly allOf?: readonly JsonSchema[]
  readonly minimum?: number
  readonly maximum?: number
  readonly minLength?: number
  readonly maxLength?: number
}

export type Content = Readonly<Record<string, { readonly schema: JsonSchema; readonly example?: unknown }>>

export interface Parameter {
  readonly name: string
  readonly in: 'path' | 'query' | 'header'
  readonly required: boolean
  readonly description: string
  readonly schema: JsonSchema
}

export interface Response {
  readonly description: string
  readonly headers?: Readonly<Record<string, { readonly description: string; readonly schema: JsonSchema }>>
  readonly content?: Content
}

export interface Operation {
  readonly operationId: string
  readonly tags: readonly string[]
  readonly summary: string
  readonly description: string
  readonly security: readonly Readonly<Record<string, readonly string[]>>[]
  readonly parameters: readonly Parameter[]
  readonly requestBody?: { readonly required: boolean; readonly content: Content }
  /** By status. Failures are references. */
  readonly responses: Readonly<Record<string, Response | { readonly $ref: string }>>
}

export interface ApiDocument {
  readonly openapi: string
  readonly info: Readonly<Record<'title' | 'version' | 'description', string>> & object
  readonly servers: readonly object[]
  readonly tags: readonly { readonly name: string; readonly description: string }[]
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly webhooks: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: {
    readonly securitySchemes: object
    readonly schemas: Readonly<Record<string, JsonSchema>>
    readonly responses: Readonly<Record<string, Response>>
  }
}
