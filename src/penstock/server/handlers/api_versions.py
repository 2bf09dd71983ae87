"""ApiVersions (18), versions 0-4: what this broker serves, read off the registry of handlers.

The response header is always the short one, also for flexible versions. An unknown version is answered in version 0
with error 35 and the range of this API (KIP-511). Up to version 3 a feature whose lowest level is 0 is hidden.
"""

from __future__ import annotations

import re

from penstock.base.errors import ErrorCode
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from penstock.protocol.requests import encode_response
from penstock.server.api import Api, Context, Request
from penstock.server.features import SUPPORTED_FEATURES

_ZERO_LEVELS_FROM = 4
_SUPPORTED_FEATURES = [
    SupportedFeatureKey(name=name, min_version=levels.start, max_version=levels.stop - 1)
    for name, levels in SUPPORTED_FEATURES.items()
]
_SOFTWARE_NAME = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


def handle(context: Context, request: Request, message: ApiVersionsRequest) -> ApiVersionsResponse:
    if request.api_version >= 3:
        name, version = message.client_software_name, message.client_software_version
        if not (_SOFTWARE_NAME.fullmatch(name) and _SOFTWARE_NAME.fullmatch(version)):
            return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
        request.session.client_software_name = name
        request.session.client_software_version = version
    features = context.image.features
    return ApiVersionsResponse(
        api_keys=[_advertised(api) for api in context.apis.values()],
        throttle_time_ms=request.throttle_ms,
        supported_features=_SUPPORTED_FEATURES if request.api_version >= _ZERO_LEVELS_FROM else [],
        finalized_features_epoch=context.image.version,
        finalized_features=[
            FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
            for name, level in sorted(features.items())
            if level
        ],
    )


def unsupported_version_response(api: Api, correlation_id: int) -> bytes:
    message = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[_advertised(api)])
    return encode_response(ApiKey.API_VERSIONS, 0, correlation_id, message)


def _advertised(api: Api) -> ApiVersion:
    lowest = api.versions.start if api.advertised_from is None else api.advertised_from
    return ApiVersion(api_key=api.key, min_version=lowest, max_version=api.versions.stop - 1)


API = Api(key=ApiKey.API_VERSIONS, versions=range(5), requirements=(), handle=handle)
