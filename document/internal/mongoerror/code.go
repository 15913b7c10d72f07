package mongoerror

import "strconv"

// Code is one of MongoDB's error codes. It is an error itself, so that errors.Is(err, mongoerror.DuplicateKey) works. A code
// without a name here is called Location and its number, as MongoDB does it.
type Code int32

// The codes that have a name.
const (
	InternalError                             Code = 1
	BadValue                                  Code = 2
	NoSuchKey                                 Code = 4
	GraphContainsCycle                        Code = 5
	HostUnreachable                           Code = 6
	HostNotFound                              Code = 7
	UnknownError                              Code = 8
	FailedToParse                             Code = 9
	CannotMutateObject                        Code = 10
	UserNotFound                              Code = 11
	UnsupportedFormat                         Code = 12
	Unauthorized                              Code = 13
	TypeMismatch                              Code = 14
	Overflow                                  Code = 15
	InvalidLength                             Code = 16
	ProtocolError                             Code = 17
	AuthenticationFailed                      Code = 18
	IllegalOperation                          Code = 20
	EmptyArrayOperation                       Code = 21
	InvalidBSON                               Code = 22
	AlreadyInitialized                        Code = 23
	LockTimeout                               Code = 24
	NamespaceNotFound                         Code = 26
	IndexNotFound                             Code = 27
	PathNotViable                             Code = 28
	NonExistentPath                           Code = 29
	RoleNotFound                              Code = 31
	CannotBackfillArray                       Code = 34
	FileNotOpen                               Code = 38
	ConflictingUpdateOperators                Code = 40
	CursorNotFound                            Code = 43
	UserDataInconsistent                      Code = 45
	LockBusy                                  Code = 46
	NoMatchingDocument                        Code = 47
	NamespaceExists                           Code = 48
	MaxTimeMSExpired                          Code = 50
	DollarPrefixedFieldName                   Code = 52
	InvalidIdField                            Code = 53
	NotSingleValueField                       Code = 54
	InvalidDBRef                              Code = 55
	EmptyFieldName                            Code = 56
	DottedFieldName                           Code = 57
	CommandNotFound                           Code = 59
	WriteConcernFailed                        Code = 64
	MultipleErrorsOccurred                    Code = 65
	ImmutableField                            Code = 66
	CannotCreateIndex                         Code = 67
	IndexAlreadyExists                        Code = 68
	InvalidOptions                            Code = 72
	InvalidNamespace                          Code = 73
	NoReplicationEnabled                      Code = 76
	UnknownReplWriteConcern                   Code = 79
	IndexOptionsConflict                      Code = 85
	IndexKeySpecsConflict                     Code = 86
	NetworkTimeout                            Code = 89
	ShutdownInProgress                        Code = 91
	NotYetInitialized                         Code = 94
	OperationFailed                           Code = 96
	UnsatisfiableWriteConcern                 Code = 100
	NotExactValueField                        Code = 111
	WriteConflict                             Code = 112
	CommandNotSupported                       Code = 115
	ConflictingOperationInProgress            Code = 117
	DocumentValidationFailure                 Code = 121
	CommandFailed                             Code = 125
	CappedPositionLost                        Code = 136
	ExceededMemoryLimit                       Code = 146
	ReadConcernMajorityNotEnabled             Code = 148
	DurationOverflow                          Code = 159
	IncompatibleCollationVersion              Code = 161
	ViewDepthLimitExceeded                    Code = 165
	CommandNotSupportedOnView                 Code = 166
	OptionNotSupportedOnView                  Code = 167
	InvalidPipelineOperator                   Code = 168
	TooManyMatchingDocuments                  Code = 170
	CannotIndexParallelArrays                 Code = 171
	TransportSessionClosed                    Code = 172
	QueryPlanKilled                           Code = 175
	AmbiguousIndexKeyPattern                  Code = 181
	PrimarySteppedDown                        Code = 189
	InvalidIndexSpecificationOption           Code = 197
	CannotBuildIndexKeys                      Code = 201
	NoSuchSession                             Code = 206
	InvalidUUID                               Code = 207
	TooManyLocks                              Code = 208
	IncompleteTransactionHistory              Code = 217
	QueryFeatureNotAllowed                    Code = 224
	TransactionTooOld                         Code = 225
	CannotImplicitlyCreateCollection          Code = 227
	MaxSubPipelineDepthExceeded               Code = 232
	SnapshotTooOld                            Code = 239
	ConversionFailure                         Code = 241
	SnapshotUnavailable                       Code = 246
	NoSuchTransaction                         Code = 251
	TransactionCommitted                      Code = 256
	TransactionTooLarge                       Code = 257
	UnknownFeatureCompatibilityVersion        Code = 258
	InvalidResumeToken                        Code = 260
	TooManyLogicalSessions                    Code = 261
	ExceededTimeLimit                         Code = 262
	OperationNotSupportedInTransaction        Code = 263
	IndexBuildAborted                         Code = 276
	UnsatisfiableCommitQuorum                 Code = 278
	ChangeStreamFatalError                    Code = 280
	TransactionCoordinatorSteppingDown        Code = 281
	ChangeStreamHistoryLost                   Code = 286
	NoQueryExecutionPlans                     Code = 291
	QueryExceededMemoryLimitNoDiskUseAllowed  Code = 292
	ObjectIsBusy                              Code = 314
	ServerSelectionTimeout                    Code = 317
	APIVersionError                           Code = 322
	APIStrictError                            Code = 323
	APIDeprecationError                       Code = 324
	MechanismUnavailable                      Code = 334
	UnsupportedOpQueryCommand                 Code = 352
	CannotConvertIndexToUnique                Code = 359
	CollectionUUIDMismatch                    Code = 361
	NotWritablePrimary                        Code = 10107
	BSONObjectTooLarge                        Code = 10334
	DuplicateKey                              Code = 11000
	MergeStageNoMatchingDocument              Code = 13113
	InterruptedAtShutdown                     Code = 11600
	Interrupted                               Code = 11601
	InterruptedDueToReplStateChange           Code = 11602
	BackgroundOperationInProgressForDatabase  Code = 12586
	BackgroundOperationInProgressForNamespace Code = 12587
	StaleConfig                               Code = 13388
	NotPrimaryNoSecondaryOk                   Code = 13435
	OutOfDiskSpace                            Code = 14031
	InvalidPipelineOperatorOptions            Code = 40602
	NotARetryableWriteCommand                 Code = 50768
	RoleAlreadyExists                         Code = 51002
	UserAlreadyExists                         Code = 51003
)

// Error returns the code's name.
func (c Code) Error() string { return c.String() }

// String returns the code's name.
func (c Code) String() string {
	if name, ok := names[c]; ok {
		return name
	}
	return "Location" + strconv.Itoa(int(c))
}

var names = map[Code]string{
	InternalError:                             "InternalError",
	BadValue:                                  "BadValue",
	NoSuchKey:                                 "NoSuchKey",
	GraphContainsCycle:                        "GraphContainsCycle",
	HostUnreachable:                           "HostUnreachable",
	HostNotFound:                              "HostNotFound",
	UnknownError:                              "UnknownError",
	FailedToParse:                             "FailedToParse",
	CannotMutateObject:                        "CannotMutateObject",
	UserNotFound:                              "UserNotFound",
	UnsupportedFormat:                         "UnsupportedFormat",
	Unauthorized:                              "Unauthorized",
	TypeMismatch:                              "TypeMismatch",
	Overflow:                                  "Overflow",
	InvalidLength:                             "InvalidLength",
	ProtocolError:                             "ProtocolError",
	AuthenticationFailed:                      "AuthenticationFailed",
	IllegalOperation:                          "IllegalOperation",
	EmptyArrayOperation:                       "EmptyArrayOperation",
	InvalidBSON:                               "InvalidBSON",
	AlreadyInitialized:                        "AlreadyInitialized",
	LockTimeout:                               "LockTimeout",
	NamespaceNotFound:                         "NamespaceNotFound",
	IndexNotFound:                             "IndexNotFound",
	PathNotViable:                             "PathNotViable",
	NonExistentPath:                           "NonExistentPath",
	RoleNotFound:                              "RoleNotFound",
	CannotBackfillArray:                       "CannotBackfillArray",
	FileNotOpen:                               "FileNotOpen",
	ConflictingUpdateOperators:                "ConflictingUpdateOperators",
	CursorNotFound:                            "CursorNotFound",
	UserDataInconsistent:                      "UserDataInconsistent",
	LockBusy:                                  "LockBusy",
	NoMatchingDocument:                        "NoMatchingDocument",
	NamespaceExists:                           "NamespaceExists",
	MaxTimeMSExpired:                          "MaxTimeMSExpired",
	DollarPrefixedFieldName:                   "DollarPrefixedFieldName",
	InvalidIdField:                            "InvalidIdField",
	NotSingleValueField:                       "NotSingleValueField",
	InvalidDBRef:                              "InvalidDBRef",
	EmptyFieldName:                            "EmptyFieldName",
	DottedFieldName:                           "DottedFieldName",
	CommandNotFound:                           "CommandNotFound",
	WriteConcernFailed:                        "WriteConcernFailed",
	MultipleErrorsOccurred:                    "MultipleErrorsOccurred",
	ImmutableField:                            "ImmutableField",
	CannotCreateIndex:                         "CannotCreateIndex",
	IndexAlreadyExists:                        "IndexAlreadyExists",
	InvalidOptions:                            "InvalidOptions",
	InvalidNamespace:                          "InvalidNamespace",
	NoReplicationEnabled:                      "NoReplicationEnabled",
	UnknownReplWriteConcern:                   "UnknownReplWriteConcern",
	IndexOptionsConflict:                      "IndexOptionsConflict",
	IndexKeySpecsConflict:                     "IndexKeySpecsConflict",
	NetworkTimeout:                            "NetworkTimeout",
	ShutdownInProgress:                        "ShutdownInProgress",
	NotYetInitialized:                         "NotYetInitialized",
	OperationFailed:                           "OperationFailed",
	UnsatisfiableWriteConcern:                 "UnsatisfiableWriteConcern",
	NotExactValueField:                        "NotExactValueField",
	WriteConflict:                             "WriteConflict",
	CommandNotSupported:                       "CommandNotSupported",
	ConflictingOperationInProgress:            "ConflictingOperationInProgress",
	DocumentValidationFailure:                 "DocumentValidationFailure",
	CommandFailed:                             "CommandFailed",
	CappedPositionLost:                        "CappedPositionLost",
	ExceededMemoryLimit:                       "ExceededMemoryLimit",
	ReadConcernMajorityNotEnabled:             "ReadConcernMajorityNotEnabled",
	DurationOverflow:                          "DurationOverflow",
	IncompatibleCollationVersion:              "IncompatibleCollationVersion",
	ViewDepthLimitExceeded:                    "ViewDepthLimitExceeded",
	CommandNotSupportedOnView:                 "CommandNotSupportedOnView",
	OptionNotSupportedOnView:                  "OptionNotSupportedOnView",
	InvalidPipelineOperator:                   "InvalidPipelineOperator",
	TooManyMatchingDocuments:                  "TooManyMatchingDocuments",
	CannotIndexParallelArrays:                 "CannotIndexParallelArrays",
	TransportSessionClosed:                    "TransportSessionClosed",
	QueryPlanKilled:                           "QueryPlanKilled",
	AmbiguousIndexKeyPattern:                  "AmbiguousIndexKeyPattern",
	PrimarySteppedDown:                        "PrimarySteppedDown",
	InvalidIndexSpecificationOption:           "InvalidIndexSpecificationOption",
	CannotBuildIndexKeys:                      "CannotBuildIndexKeys",
	NoSuchSession:                             "NoSuchSession",
	InvalidUUID:                               "InvalidUUID",
	TooManyLocks:                              "TooManyLocks",
	IncompleteTransactionHistory:              "IncompleteTransactionHistory",
	QueryFeatureNotAllowed:                    "QueryFeatureNotAllowed",
	TransactionTooOld:                         "TransactionTooOld",
	CannotImplicitlyCreateCollection:          "CannotImplicitlyCreateCollection",
	MaxSubPipelineDepthExceeded:               "MaxSubPipelineDepthExceeded",
	SnapshotTooOld:                            "SnapshotTooOld",
	ConversionFailure:                         "ConversionFailure",
	SnapshotUnavailable:                       "SnapshotUnavailable",
	NoSuchTransaction:                         "NoSuchTransaction",
	TransactionCommitted:                      "TransactionCommitted",
	TransactionTooLarge:                       "TransactionTooLarge",
	UnknownFeatureCompatibilityVersion:        "UnknownFeatureCompatibilityVersion",
	InvalidResumeToken:                        "InvalidResumeToken",
	TooManyLogicalSessions:                    "TooManyLogicalSessions",
	ExceededTimeLimit:                         "ExceededTimeLimit",
	OperationNotSupportedInTransaction:        "OperationNotSupportedInTransaction",
	IndexBuildAborted:                         "IndexBuildAborted",
	UnsatisfiableCommitQuorum:                 "UnsatisfiableCommitQuorum",
	ChangeStreamFatalError:                    "ChangeStreamFatalError",
	TransactionCoordinatorSteppingDown:        "TransactionCoordinatorSteppingDown",
	MergeStageNoMatchingDocument:              "MergeStageNoMatchingDocument",
	ChangeStreamHistoryLost:                   "ChangeStreamHistoryLost",
	NoQueryExecutionPlans:                     "NoQueryExecutionPlans",
	QueryExceededMemoryLimitNoDiskUseAllowed:  "QueryExceededMemoryLimitNoDiskUseAllowed",
	ObjectIsBusy:                              "ObjectIsBusy",
	ServerSelectionTimeout:                    "ServerSelectionTimeout",
	APIVersionError:                           "APIVersionError",
	APIStrictError:                            "APIStrictError",
	APIDeprecationError:                       "APIDeprecationError",
	MechanismUnavailable:                      "MechanismUnavailable",
	UnsupportedOpQueryCommand:                 "UnsupportedOpQueryCommand",
	CannotConvertIndexToUnique:                "CannotConvertIndexToUnique",
	CollectionUUIDMismatch:                    "CollectionUUIDMismatch",
	NotWritablePrimary:                        "NotWritablePrimary",
	BSONObjectTooLarge:                        "BSONObjectTooLarge",
	DuplicateKey:                              "DuplicateKey",
	InterruptedAtShutdown:                     "InterruptedAtShutdown",
	Interrupted:                               "Interrupted",
	InterruptedDueToReplStateChange:           "InterruptedDueToReplStateChange",
	BackgroundOperationInProgressForDatabase:  "BackgroundOperationInProgressForDatabase",
	BackgroundOperationInProgressForNamespace: "BackgroundOperationInProgressForNamespace",
	StaleConfig:                               "StaleConfig",
	NotPrimaryNoSecondaryOk:                   "NotPrimaryNoSecondaryOk",
	OutOfDiskSpace:                            "OutOfDiskSpace",
	NotARetryableWriteCommand:                 "NotARetryableWriteCommand",
}
