"""UpdateFeatures (57), versions 0-2: raise or lower the level of cluster features, all of them or none.

Version 0 can only allow a downgrade or not; from 1 on a downgrade is said to be safe or unsafe, and a request may ask
for validation alone. Up to version 1 every feature has a result of its own.
"""

from __future__ import annotations

from penstock.base.errors import ErrorCode, KafkaError
from penstock.controller.features import FeatureUpdate, UpgradeType
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.update_features import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from penstock.security.authorizer import Operation, Requirement, ResourceType
from penstock.server.api import Api, Context, Request
from penstock.server.features import SUPPORTED_FEATURES


async def handle(context: Context, request: Request, message: UpdateFeaturesRequest) -> UpdateFeaturesResponse:
    response = UpdateFeaturesResponse(throttle_time_ms=request.throttle_ms)
    # A feature that is named twice gets the level that was named last.
    updates = {each.feature: _update(each, request.api_version) for each in message.feature_updates}
    try:
        await context.controller.update_features(
            list(updates.values()), SUPPORTED_FEATURES, validate_only=message.validate_only
        )
    except KafkaError as error:
        response.error_code = error.code
        response.error_message = (
            f"The update failed for all features since the following feature had an error: {error.message}"
        )
        return response
    if request.api_version <= 1:
        response.results = [UpdatableFeatureResult(feature=each.feature) for each in message.feature_updates]
    return response


def _update(update: FeatureUpdateKey, version: int) -> FeatureUpdate:
    upgrade_type = update.upgrade_type
    if version == 0:
        upgrade_type = UpgradeType.SAFE_DOWNGRADE if update.allow_downgrade else UpgradeType.UPGRADE
    return FeatureUpdate(feature=update.feature, level=update.max_version_level, upgrade_type=upgrade_type)


def _error_response(code: ErrorCode) -> UpdateFeaturesResponse:
    return UpdateFeaturesResponse(error_code=code)


API = Api(
    key=ApiKey.UPDATE_FEATURES,
    versions=range(3),
    requirements=(Requirement(Operation.ALTER, ResourceType.CLUSTER),),
    handle=handle,
    error_response=_error_response,
)
